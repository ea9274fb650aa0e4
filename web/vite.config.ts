// Into the Python package, unminified: what ships is what can be read. Names without hashes, because the server tells
// browsers by the digest whether what they have is still good.

import { defineConfig } from "vite";
import { digest } from "./digest.ts";

const root = import.meta.dirname;

export default defineConfig({
  root,
  base: "/_/static/",
  // `npm run dev`, with `dragoman serve` behind it for everything that is not a source file.
  server: { proxy: { "/_/api": "http://127.0.0.1:8787" } },
  build: {
    target: "es2023",
    outDir: "../src/dragoman/web/static",
    emptyOutDir: true,
    minify: false,
    cssMinify: false,
    modulePreload: false,
    rolldownOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "style[extname]" },
    },
  },
  plugins: [
    {
      name: "digest",
      generateBundle() {
        this.emitFile({ type: "asset", fileName: "digest.txt", source: `${digest(root)}\n` });
      },
    },
  ],
});
