import { t } from "../i18n";

export default function View() {
  return (
    <main id="main" class="page">
      <p>{t("loading")}</p>
    </main>
  );
}
