// Addresses of the page: what follows the `#`. A link's token is there too, so no server log has it.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  view: string;
  id: string;
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", id = ""] = path.split("/");
  return { view, id: decodeURIComponent(id), query: new URLSearchParams(query) };
}

export function go(hash: string): void {
  location.hash = hash;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const update = () => location.hash.startsWith("#/") && setRoute(parseRoute(location.hash));
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return route;
}
