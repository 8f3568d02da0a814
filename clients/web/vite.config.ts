import { env } from "node:process";
import { defineConfig } from "vite";

// Names without hashes: the built page is committed, and the edge has browsers revalidate each file.
export default defineConfig({
  base: "/static/edge/page/",
  build: {
    outDir: env["PAGE_OUT"] ?? "../../services/peripety/edge/static/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: {
      output: {
        entryFileNames: "[name].js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
        // The code that every view uses is one file: each further one would be one more request before the first drawing.
        codeSplitting: { groups: [{ name: "ui", test: /node_modules|src[\\/](api|i18n|router|text|ui)\.tsx?$|locales[\\/]en/ }] },
      },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ["/scenarios", "/sessions", "/links", "/rpc", "/health", "/openapi.json"].map((path) => [
        path,
        { target: env["PERIPETY_EDGE"] ?? "http://127.0.0.1:50080", changeOrigin: true },
      ]),
    ),
  },
});
