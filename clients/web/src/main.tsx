// The page: its frame, its views, and the settings of its reader.
import { render, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { currentLanguage, LANGUAGES, loadLanguage, read, t, write, type Language } from "./i18n";
import type { Problem } from "./api";
import HomeView from "./play/HomeView";
import PlayView from "./play/PlayView";
import WriteView from "./play/WriteView";
import { useRoute, type Route } from "./router";
import { Icon, ProblemBox, Sheet, Skeleton, toProblem, useMedia } from "./ui";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/play.css";
import "./styles/views.css";

const THEME = "peripety.theme";
const VIEWS = ["play", "inspect", "policies", "tests", "usage"] as const;

const LAZY: Record<string, () => Promise<{ default: ComponentType<{ id: string }> }>> = {
  inspect: () => import("./inspect/InspectView"),
  policies: () => import("./views/PoliciesView"),
  tests: () => import("./views/TestsView"),
  usage: () => import("./views/UsageView"),
};

function App() {
  const route = useRoute();
  const [, setLanguage] = useState(currentLanguage());
  useEffect(() => {
    document.getElementById("main")?.scrollTo?.(0, 0);
    scrollTo(0, 0);
  }, [route.view, route.id]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        {t("skip")}
      </a>
      <Header route={route} onLanguage={(language) => loadLanguage(language).then(() => setLanguage(language))} />
      <View route={route} />
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  const main = document.getElementById("main");
  main?.setAttribute("tabindex", "-1");
  main?.focus();
}

function View({ route }: { route: Route }) {
  switch (route.view) {
    case "play":
      return <PlayView key={route.id} id={route.id} pov={route.query.get("pov") ?? undefined} />;
    case "watch":
      return <PlayView key={route.id} token={route.id} />;
    case "write":
      return <WriteView />;
    default:
      return route.view in LAZY ? <LazyView key={route.view} name={route.view} id={route.id} /> : <HomeView />;
  }
}

/** A view whose script is loaded when it is first opened. */
function LazyView({ name, id }: { name: string; id: string }) {
  const [Loaded, setLoaded] = useState<ComponentType<{ id: string }>>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    let isCurrent = true;
    LAZY[name]!().then(
      (found) => isCurrent && setLoaded(() => found.default),
      // The server is gone, or has a newer page by now.
      (error: unknown) => isCurrent && setProblem(toProblem(error)),
    );
    return () => {
      isCurrent = false;
    };
  }, [name]);
  if (Loaded) return <Loaded key={id} id={id} />;
  return (
    <main id="main" class="page">
      {problem ? <ProblemBox problem={problem} retry={() => location.reload()} /> : <Skeleton lines={8} />}
    </main>
  );
}

function Header({ route, onLanguage }: { route: Route; onLanguage: (language: Language) => void }) {
  const isNarrow = useMedia("(max-width: 47.49rem)");
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [route.view, route.id]);
  const here = route.view in LAZY ? route.view : "play";
  const nav = (
    <nav class="nav" aria-label={t("nav")}>
      {VIEWS.map((view) => (
        <a key={view} href={view === "play" ? "#/" : `#/${view}`} aria-current={view === here ? "page" : undefined} data-text={t(`nav.${view}`)}>
          {t(`nav.${view}`)}
        </a>
      ))}
    </nav>
  );
  const settings = <Settings onLanguage={onLanguage} />;
  return (
    <header class="header">
      <a class="brand" href="#/">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <path d="M3 22c7 0 7-13 14-13 5 0 5 7 12 7" />
          <circle cx="17" cy="9" r="2.4" />
        </svg>
        Peripety
      </a>
      {isNarrow ? (
        <button class="button plain" aria-label={t("menu")} aria-expanded={isOpen} onClick={() => setOpen(true)}>
          <Icon name="menu" />
        </button>
      ) : (
        <>
          {nav}
          {settings}
        </>
      )}
      {isNarrow && isOpen && (
        <Sheet title={t("menu")} onClose={() => setOpen(false)}>
          {nav}
          {settings}
        </Sheet>
      )}
    </header>
  );
}

function Settings({ onLanguage }: { onLanguage: (language: Language) => void }) {
  const [theme, setTheme] = useState(read(THEME) ?? "auto");
  const choose = (next: string) => {
    write(THEME, next);
    setTheme(next);
    applyTheme(next);
  };
  return (
    <div class="settings">
      <label>
        <span class="settings-label">{t("theme")}</span>
        <select class="field small" title={t("theme")} value={theme} onChange={(event) => choose(event.currentTarget.value)}>
          {(["auto", "light", "dark"] as const).map((one) => (
            <option key={one} value={one}>
              {t(`theme.${one}`)}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span class="settings-label">{t("language")}</span>
        <select
          class="field small"
          title={t("language")}
          value={currentLanguage()}
          onChange={(event) => onLanguage(event.currentTarget.value as Language)}
        >
          {Object.entries(LANGUAGES).map(([language, name]) => (
            <option key={language} value={language} lang={language}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function applyTheme(theme: string): void {
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme);
}

applyTheme(read(THEME) ?? "auto");
await loadLanguage();
render(<App />, document.getElementById("app")!);
