// Texts of the page in the language of the reader.
import { en } from "./locales/en";

type Plural = { [rule in Intl.LDMLPluralRule]?: string } & { other: string };
export type Message = string | Plural;
export type Key = keyof typeof en;
export type Messages = Record<Key, Message>;
export type Language = "en" | "ar";

export const LANGUAGES: Record<Language, string> = { en: "English", ar: "العربية" };

const STORED = "peripety.language";

let messages: Messages = en;
let language: Language = "en";
// Digits of the story are Latin, so those of the page are too.
let locale = "en-u-nu-latn";

/** Returns a function that makes a format on first use, and again for another language: making one takes milliseconds. */
function lazily<T>(make: (locale: string) => T): () => T {
  let made: { locale: string; format: T } | undefined;
  return () => {
    if (made?.locale !== locale) made = { locale, format: make(locale) };
    return made.format;
  };
}

const plurals = lazily((locale) => new Intl.PluralRules(locale));
const numbers = lazily((locale) => new Intl.NumberFormat(locale, { maximumFractionDigits: 2 }));
const percents = lazily((locale) => new Intl.NumberFormat(locale, { style: "percent" }));
const dates = lazily((locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }));
const days = lazily((locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }));
const times = lazily((locale) => new Intl.DateTimeFormat(locale, { timeStyle: "medium" }));

/** Returns the message of a key with its values; `n` chooses the plural form. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const message = messages[key];
  const n = values["n"];
  const text =
    typeof message === "string" ? message : (message[plurals().select(typeof n === "number" ? n : 0)] ?? message.other);
  return text.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    return typeof value === "number" ? number(value) : (value ?? "");
  });
}

/** Returns the message of a key that is computed, or the fallback if there is none. */
export function tMaybe(key: string, fallback: string): string {
  return key in messages ? t(key as Key) : fallback;
}

export function number(value: number): string {
  return numbers().format(value).replace("-", "−");
}

export function percent(share: number): string {
  return percents().format(share).replace("-", "−");
}

/** Returns the percentages of the parts of a whole, rounded so that their sum is right. */
export function percentsOfWhole(shares: number[]): string[] {
  const whole = shares.map((share) => Math.floor(100 * share));
  const sum = (values: number[]) => values.reduce((all, one) => all + one, 0);
  const missing = Math.round(100 * sum(shares)) - sum(whole);
  const rest = (index: number) => 100 * shares[index]! - whole[index]!;
  // Those that are rounded down the most are rounded up instead.
  const raised = shares.map((_, index) => index).sort((one, other) => rest(other) - rest(one) || one - other).slice(0, missing);
  return whole.map((one, index) => percent((raised.includes(index) ? one + 1 : one) / 100));
}

/** Returns an amount of money, given in millionths of a millionth of its unit. */
export function price(pico: number, currency = "USD"): string {
  const value = pico / 1e12;
  const digits = value !== 0 && Math.abs(value) < 0.01 ? 5 : 2;
  // The sign of the currency before the amount, as in prices of providers; in text from right to left it would be moved.
  return new Intl.NumberFormat("en", { style: "currency", currency, currencyDisplay: "narrowSymbol", minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
}

export function date(text: string | undefined): string {
  return text ? dates().format(new Date(text)) : "";
}

/** Returns a day that is given in UTC. */
export function day(text: string | undefined): string {
  return text ? days().format(new Date(text)) : "";
}

/** Returns a number of seconds in hours, minutes and seconds. */
export function duration(seconds: number): string {
  const parts = { hour: Math.floor(seconds / 3600), minute: Math.floor(seconds / 60) % 60, second: seconds % 60 };
  return Object.entries(parts)
    .filter(([unit, value]) => value || (unit === "second" && seconds < 1))
    .map(([unit, value]) => new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "short" }).format(value))
    .join(" ");
}

export function currentLanguage(): Language {
  return language;
}

/** Loads the stored or preferred language, and sets language and direction of the document. */
export async function loadLanguage(wanted?: Language): Promise<void> {
  const stored = wanted ?? read(STORED) ?? navigator.language.slice(0, 2);
  language = stored === "ar" ? "ar" : "en";
  messages = language === "ar" ? (await import("./locales/ar")).ar : en;
  locale = `${language}-u-nu-latn`;
  document.documentElement.lang = language;
  document.documentElement.dir = language === "ar" ? "rtl" : "ltr";
  if (wanted) write(STORED, wanted);
}

export function time(text: string): string {
  return times().format(new Date(text));
}

/** Reads a setting; undefined where the browser stores none. */
export function read(name: string): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

export function write(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Private windows may store nothing; the setting lasts as long as the page.
  }
}
