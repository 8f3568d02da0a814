// The description that is being written. A page that is loaded again continues the same work.
const STORED = "peripety.writing";

export interface Writing {
  description: string;
  key: string;
}

export function startWriting(description: string): Writing {
  const writing = { description, key: crypto.randomUUID() };
  sessionStorage.setItem(STORED, JSON.stringify(writing));
  return writing;
}

export function currentWriting(): Writing | undefined {
  const stored = sessionStorage.getItem(STORED);
  return stored ? (JSON.parse(stored) as Writing) : undefined;
}
