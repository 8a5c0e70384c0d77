// The places of the app's files and of the protocol's page, for the tests.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
export const assets = join(root, "Sources/Product/PhoneApp/Assets");

// Node takes the files as modules only beside a package.json that says so; the app has none.
const copy = mkdtempSync(join(tmpdir(), "phone-app-"));
cpSync(assets, copy, { recursive: true });
writeFileSync(join(copy, "package.json"), '{"type": "module"}');
process.on("exit", () => rmSync(copy, { recursive: true, force: true }));

export const asset = (name) => pathToFileURL(join(copy, name)).href;

const page = readFileSync(join(root, "docs/phones/device-protocol.md"), "utf8");

/** The example of the protocol's page with that name, as in "```json enrol claims". */
export function example(name) {
  const found = new RegExp(`^ *\`\`\`(?:json|text) ${name}\\n([^\`]*?)\\n *\`\`\``, "m").exec(page);
  if (!found) throw new Error(`the page has no example ${name}`);
  return found[1].trim();
}
