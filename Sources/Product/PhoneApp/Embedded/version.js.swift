// Written by dev/embed-pages from Assets/version.js. Do not edit.
extension AppFile {
    static let versionJS = AppFile(
        "version.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The version of the app. The service worker keeps the files that the person accepted, and loads
            // others only when the person accepts them. A version is what /phone/config.json says: its name,
            // the relays it may call, and the SHA-256 of each file.

            import { utf8 } from "./bytes.js";
            import { digest } from "./signing.js";
            import { workerAddress } from "./trusted.js";

            /**
             * One text for all files of a version, which a release publishes: the SHA-256 of its lines `PATH
             * HASH`, sorted by path, in groups of four for reading.
             */
            export async function fingerprint({ files }) {
              const lines = Object.keys(files).sort().map((path) => `${path} ${files[path]}\n`);
              const hash = await digest(utf8(lines.join("")));
              return [...hash.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("").match(/.{4}/g).join(" ");
            }

            /** The paths whose hashes differ, or which only one of the two versions has. */
            export function changedFiles(old, other) {
              const paths = new Set([...Object.keys(old.files), ...Object.keys(other.files)]);
              return [...paths].filter((path) => old.files[path] !== other.files[path]).sort();
            }

            /** Registers the service worker; returns null if it cannot run, or could not load the first version. */
            export async function startWorker() {
              try {
                const registration = await navigator.serviceWorker.register(
                  workerAddress(), { scope: "/phone/", updateViaCache: "none" });
                return await Promise.race([navigator.serviceWorker.ready, failure(registration)]);
              } catch {
                return null;
              }
            }

            /** Ends with null if the worker that is being installed fails. Without this, `ready` never ends. */
            function failure({ installing }) {
              return new Promise((resolve) => {
                installing?.addEventListener("statechange", () => {
                  if (installing.state === "redundant") resolve(null);
                });
              });
            }

            /** Asks the service worker: `update` for a version to accept, `accept` to load it. */
            export function askWorker(registration, message) {
              return new Promise((resolve, reject) => {
                const { port1, port2 } = new MessageChannel();
                port1.onmessage = ({ data }) => {
                  port1.close();
                  if (data.error) reject(new Error(data.error));
                  else resolve(data);
                };
                registration.active.postMessage(message, [port2]);
              });
            }

            """#)
}
