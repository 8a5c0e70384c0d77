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

            const x = new Int32Array(16);

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

            /**
             * Salsa20/8 of `x`, in place: four double rounds, of the columns and then of the rows. Variables in
             * place of an array make it twice as fast, which counts on a slow phone.
             */
            function salsa() {
              let x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3], x4 = x[4], x5 = x[5], x6 = x[6], x7 = x[7];
              let x8 = x[8], x9 = x[9], x10 = x[10], x11 = x[11], x12 = x[12], x13 = x[13], x14 = x[14], x15 = x[15];
              let s;
              for (let round = 0; round < 4; round += 1) {
                s = (x0 + x12) | 0; x4 ^= (s << 7) | (s >>> 25); s = (x4 + x0) | 0; x8 ^= (s << 9) | (s >>> 23);
                s = (x8 + x4) | 0; x12 ^= (s << 13) | (s >>> 19); s = (x12 + x8) | 0; x0 ^= (s << 18) | (s >>> 14);
                s = (x5 + x1) | 0; x9 ^= (s << 7) | (s >>> 25); s = (x9 + x5) | 0; x13 ^= (s << 9) | (s >>> 23);
                s = (x13 + x9) | 0; x1 ^= (s << 13) | (s >>> 19); s = (x1 + x13) | 0; x5 ^= (s << 18) | (s >>> 14);
                s = (x10 + x6) | 0; x14 ^= (s << 7) | (s >>> 25); s = (x14 + x10) | 0; x2 ^= (s << 9) | (s >>> 23);
                s = (x2 + x14) | 0; x6 ^= (s << 13) | (s >>> 19); s = (x6 + x2) | 0; x10 ^= (s << 18) | (s >>> 14);
                s = (x15 + x11) | 0; x3 ^= (s << 7) | (s >>> 25); s = (x3 + x15) | 0; x7 ^= (s << 9) | (s >>> 23);
                s = (x7 + x3) | 0; x11 ^= (s << 13) | (s >>> 19); s = (x11 + x7) | 0; x15 ^= (s << 18) | (s >>> 14);
                s = (x0 + x3) | 0; x1 ^= (s << 7) | (s >>> 25); s = (x1 + x0) | 0; x2 ^= (s << 9) | (s >>> 23);
                s = (x2 + x1) | 0; x3 ^= (s << 13) | (s >>> 19); s = (x3 + x2) | 0; x0 ^= (s << 18) | (s >>> 14);
                s = (x5 + x4) | 0; x6 ^= (s << 7) | (s >>> 25); s = (x6 + x5) | 0; x7 ^= (s << 9) | (s >>> 23);
                s = (x7 + x6) | 0; x4 ^= (s << 13) | (s >>> 19); s = (x4 + x7) | 0; x5 ^= (s << 18) | (s >>> 14);
                s = (x10 + x9) | 0; x11 ^= (s << 7) | (s >>> 25); s = (x11 + x10) | 0; x8 ^= (s << 9) | (s >>> 23);
                s = (x8 + x11) | 0; x9 ^= (s << 13) | (s >>> 19); s = (x9 + x8) | 0; x10 ^= (s << 18) | (s >>> 14);
                s = (x15 + x14) | 0; x12 ^= (s << 7) | (s >>> 25); s = (x12 + x15) | 0; x13 ^= (s << 9) | (s >>> 23);
                s = (x13 + x12) | 0; x14 ^= (s << 13) | (s >>> 19); s = (x14 + x13) | 0; x15 ^= (s << 18) | (s >>> 14);
              }
              x[0] += x0; x[1] += x1; x[2] += x2; x[3] += x3;
              x[4] += x4; x[5] += x5; x[6] += x6; x[7] += x7;
              x[8] += x8; x[9] += x9; x[10] += x10; x[11] += x11;
              x[12] += x12; x[13] += x13; x[14] += x14; x[15] += x15;
            }

            """#)
}
