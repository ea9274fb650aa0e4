// Builds into the Python package, unminified, so that users can read what ships. File names have no hashes: by the digest,
// the server tells browsers whether their copy is still current.

import { defineConfig, rolldownVersion, version } from "vite";
import { digest } from "./digest.ts";
import wanted from "./package.json" with { type: "json" };

const root = import.meta.dirname;

// Other versions of the tools generate different text, so the committed files would depend on who built them.
if (version !== wanted.devDependencies.vite || rolldownVersion !== wanted.overrides.rolldown) {
  throw new Error(`built with vite ${version} and rolldown ${rolldownVersion}, which are not those of package.json: run npm ci`);
}

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
