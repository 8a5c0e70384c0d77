/** Certificates for tests, made by openssl in a temporary directory. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An authority with a certificate for the server `localhost` and one for the website `shop`. */
export function makeAuthority() {
  const directory = mkdtempSync(join(tmpdir(), "twoefay-node-"));
  const at = (name) => join(directory, name);
  const openssl = (...words) => execFileSync("openssl", words, { stdio: "pipe" });
  const key = (name) => ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
    "-keyout", at(`${name}.key`)];
  openssl("req", "-x509", ...key("ca"), "-out", at("ca.pem"), "-days", "2", "-subj", "/CN=Test CA");
  const issue = (name, names) => {
    openssl("req", "-new", ...key(name), "-out", at(`${name}.csr`), "-subj", `/CN=${name}`);
    writeFileSync(at("extensions"), `subjectAltName=${names}\n`);
    openssl("x509", "-req", "-in", at(`${name}.csr`), "-CA", at("ca.pem"), "-CAkey", at("ca.key"),
      "-CAcreateserial", "-days", "2", "-extfile", at("extensions"), "-out", at(`${name}.pem`));
  };
  issue("localhost", "DNS:localhost");
  issue("shop", "URI:twoefay:website:shop");
  const file = (name) => readFileSync(at(name));
  const read = (name) => ({ cert: file(`${name}.pem`), key: file(`${name}.key`) });
  return { directory, at, issue, read, ca: file("ca.pem") };
}
