// Written by dev/embed-pages from Assets/scrypt.js. Do not edit.
extension AppFile {
    static let scryptJS = AppFile(
        "scrypt.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // scrypt (RFC 7914). Web Crypto has PBKDF2 but not the mixing between its two uses. The mixing runs
            // in short pieces, so that the page stays usable while it takes its second or so.

            const piece = 12;

            /** The result of scrypt with p = 1; `pause` is awaited between pieces of a few milliseconds. */
            export async function scrypt(password, salt, { N, r, length }, pause = nextTask) {
              const key = await crypto.subtle.importKey("raw", password, "PBKDF2", false, ["deriveBits"]);
              const derive = async (with_, bytes) =>
                new Uint8Array(await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: with_, iterations: 1 }, key, bytes * 8));
              const block = await derive(salt, 128 * r);
              await mix(new Uint32Array(block.buffer), N, r, pause);
              const result = await derive(block, length);
              block.fill(0);
              return result;
            }

            function nextTask() {
              return new Promise((resolve) => {
                const { port1, port2 } = new MessageChannel();
                port1.onmessage = () => {
                  port1.close();
                  resolve();
                };
                port2.postMessage(null);
              });
            }

            /** ROMix. The words are little-endian, as are those of every machine that has a browser. */
            async function mix(words, N, r, pause) {
              const size = 32 * r;
              const table = new Uint32Array(N * size);
              const spare = new Uint32Array(size);
              let until = performance.now() + piece;
              for (let i = 0; i < N; i += 1) {
                table.set(words, i * size);
                mixBlocks(words, spare, r);
                if ((i & 63) === 0 && performance.now() > until) {
                  await pause();
                  until = performance.now() + piece;
                }
              }
              for (let i = 0; i < N; i += 1) {
                const from = (words[size - 16] & (N - 1)) * size;
                for (let at = 0; at < size; at += 1) words[at] ^= table[from + at];
                mixBlocks(words, spare, r);
                if ((i & 63) === 0 && performance.now() > until) {
                  await pause();
                  until = performance.now() + piece;
                }
              }
              table.fill(0);
              spare.fill(0);
            }

            const x = new Uint32Array(16);
            const z = new Int32Array(16);

            /** BlockMix: the blocks with an even number come first, then the others. */
            function mixBlocks(words, spare, r) {
              for (let at = 0; at < 16; at += 1) x[at] = words[(2 * r - 1) * 16 + at];
              for (let i = 0; i < 2 * r; i += 1) {
                for (let at = 0; at < 16; at += 1) x[at] ^= words[i * 16 + at];
                salsa();
                spare.set(x, ((i >> 1) + (i & 1) * r) * 16);
              }
              words.set(spare);
            }

            /** The indexes of the quarter-rounds of a double round of Salsa20: columns, then rows. */
            const quarters = [
              [0, 4, 8, 12], [5, 9, 13, 1], [10, 14, 2, 6], [15, 3, 7, 11],
              [0, 1, 2, 3], [5, 6, 7, 4], [10, 11, 8, 9], [15, 12, 13, 14],
            ];

            /** Salsa20/8 of `x`, in place. */
            function salsa() {
              z.set(x);
              for (let round = 0; round < 4; round += 1) {
                for (let q = 0; q < 8; q += 1) {
                  const [a, b, c, d] = quarters[q];
                  let sum = z[a] + z[d] | 0;
                  z[b] ^= (sum << 7) | (sum >>> 25);
                  sum = z[b] + z[a] | 0;
                  z[c] ^= (sum << 9) | (sum >>> 23);
                  sum = z[c] + z[b] | 0;
                  z[d] ^= (sum << 13) | (sum >>> 19);
                  sum = z[d] + z[c] | 0;
                  z[a] ^= (sum << 18) | (sum >>> 14);
                }
              }
              for (let at = 0; at < 16; at += 1) x[at] = x[at] + z[at] | 0;
            }

            """#)
}
