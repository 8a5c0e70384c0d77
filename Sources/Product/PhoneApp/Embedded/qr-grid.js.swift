// Written by dev/embed-pages from Assets/qr-grid.js. Do not edit.
extension AppFile {
    static let qrGridJS = AppFile(
        "qr-grid.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The text of a QR code whose modules are known: format, mask, blocks, corrections and segments.

            import { correct } from "./qr-correction.js";

            /** The blocks of each version and level, as [corrections per block, blocks]; L, M, Q, H. */
            const corrections = [
              [7, 10, 13, 17], [10, 16, 22, 28], [15, 26, 18, 22], [20, 18, 26, 16], [26, 24, 18, 22], [18, 16, 24, 28],
              [20, 18, 18, 26], [24, 22, 22, 26], [30, 22, 20, 24], [18, 26, 24, 28], [20, 30, 28, 24], [24, 22, 26, 28],
              [26, 22, 24, 22], [30, 24, 20, 24], [22, 24, 30, 24], [24, 28, 24, 30], [28, 28, 28, 28], [30, 26, 28, 28],
              [28, 26, 26, 26], [28, 26, 30, 28], [28, 26, 28, 30], [28, 28, 30, 24], [30, 28, 30, 30], [30, 28, 30, 30],
              [26, 28, 30, 30], [28, 28, 28, 30], [30, 28, 30, 30], [30, 28, 30, 30], [30, 28, 30, 30], [30, 28, 30, 30],
              [30, 28, 30, 30], [30, 28, 30, 30], [30, 28, 30, 30], [30, 28, 30, 30], [30, 28, 30, 30], [30, 28, 30, 30],
              [30, 28, 30, 30], [30, 28, 30, 30], [30, 28, 30, 30], [30, 28, 30, 30],
            ];
            const blockCounts = [
              [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 2, 2], [1, 2, 2, 4], [1, 2, 4, 4], [2, 4, 4, 4],
              [2, 4, 6, 5], [2, 4, 6, 6], [2, 5, 8, 8], [4, 5, 8, 8], [4, 5, 8, 11], [4, 8, 10, 11],
              [4, 9, 12, 16], [4, 9, 16, 16], [6, 10, 12, 18], [6, 10, 17, 16], [6, 11, 16, 19], [6, 13, 18, 21],
              [7, 14, 21, 25], [8, 16, 20, 25], [8, 17, 23, 25], [9, 17, 23, 34], [9, 18, 25, 30], [10, 20, 27, 32],
              [12, 21, 29, 35], [12, 23, 34, 37], [12, 25, 34, 40], [13, 26, 35, 42], [14, 28, 38, 45], [15, 29, 40, 48],
              [16, 31, 43, 51], [17, 33, 45, 54], [18, 35, 48, 57], [19, 37, 51, 60], [19, 38, 53, 63], [20, 40, 56, 66],
              [21, 43, 59, 70], [22, 45, 62, 74], [24, 47, 65, 77], [25, 49, 68, 81],
            ];
            /** The level of the two bits in the format, as an index of the tables above. */
            const levels = [1, 0, 3, 2];

            const masks = [
              (x, y) => (x + y) % 2 === 0, (x, y) => y % 2 === 0, (x) => x % 3 === 0, (x, y) => (x + y) % 3 === 0,
              (x, y) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2 === 0, (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
              (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
            ];

            /** Reads {size, get(x, y)}, where get says whether a module is dark; null if it is no code. */
            export function readGrid(grid) {
              const version = (grid.size - 17) / 4;
              if (!Number.isInteger(version) || version < 1 || version > 40) return null;
              const format = readFormat(grid);
              if (!format) return null;
              const bytes = readCodewords(grid, version, masks[format.mask]);
              const data = readBlocks(bytes, corrections[version - 1][format.level], blockCounts[version - 1][format.level]);
              return data && readSegments(data, version);
            }

            /** The 15 bits of format `value`, with its BCH code and mask. */
            export function formatBits(value) {
              let rest = value << 10;
              for (let bit = 14; bit >= 10; bit -= 1) if (rest & (1 << bit)) rest ^= 0x537 << (bit - 10);
              return ((value << 10) | rest) ^ 0x5412;
            }

            /** The nearest format to either copy, with at most three wrong bits. */
            function readFormat({ size, get }) {
              const places = [
                [[8, 0], [8, 1], [8, 2], [8, 3], [8, 4], [8, 5], [8, 7], [8, 8], [7, 8], [5, 8], [4, 8], [3, 8], [2, 8], [1, 8], [0, 8]],
                [...Array.from({ length: 8 }, (_, at) => [size - 1 - at, 8]), ...Array.from({ length: 7 }, (_, at) => [8, size - 7 + at])],
              ];
              let best = { distance: 4 };
              for (const copy of places) {
                const found = copy.reduce((bits, [x, y], at) => bits | (get(x, y) ? 1 << at : 0), 0);
                for (let value = 0; value < 32; value += 1) {
                  const distance = countOnes(found ^ formatBits(value));
                  if (distance < best.distance) best = { distance, level: levels[value >> 3], mask: value & 7 };
                }
              }
              return best.distance < 4 ? best : null;
            }

            function countOnes(value) {
              let count = 0;
              for (let rest = value; rest !== 0; rest &= rest - 1) count += 1;
              return count;
            }

            /** The coordinates of the alignment patterns, which are the same in both directions. */
            export function alignmentPlaces(version) {
              if (version === 1) return [];
              const count = Math.floor(version / 7) + 2;
              const last = version * 4 + 10;
              const step = version === 32 ? 26 : Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
              return [6, ...Array.from({ length: count - 1 }, (_, at) => last - (count - 2 - at) * step)];
            }

            /** Whether a module has no data: a pattern, the format or the version. */
            function isFunction(x, y, size, version, places) {
              if (x === 6 || y === 6) return true;
              if ((x < 9 && y < 9) || (x < 9 && y >= size - 8) || (x >= size - 8 && y < 9)) return true;
              if (version >= 7 && ((x >= size - 11 && y < 6) || (y >= size - 11 && x < 6))) return true;
              const near = (at) => places.find((place) => Math.abs(place - at) <= 2);
              const [cx, cy] = [near(x), near(y)];
              if (cx === undefined || cy === undefined) return false;
              const last = places.at(-1);
              return !((cx === 6 && cy === 6) || (cx === 6 && cy === last) || (cx === last && cy === 6));
            }

            /** The codewords, in the order in which they stand: two columns at a time, from the right. */
            function readCodewords({ size, get }, version, mask) {
              const places = alignmentPlaces(version);
              const bytes = [];
              let [bits, count] = [0, 0];
              let isUp = true;
              for (let right = size - 1; right > 0; right -= 2) {
                if (right === 6) right = 5;
                for (let step = 0; step < size; step += 1) {
                  const y = isUp ? size - 1 - step : step;
                  for (const x of [right, right - 1]) {
                    if (isFunction(x, y, size, version, places)) continue;
                    bits = (bits << 1) | (get(x, y) !== mask(x, y) ? 1 : 0);
                    count += 1;
                    if (count < 8) continue;
                    bytes.push(bits);
                    [bits, count] = [0, 0];
                  }
                }
                isUp = !isUp;
              }
              return bytes;
            }

            /** Separates the blocks, corrects each, and joins their data; null if one has too many faults. */
            function readBlocks(bytes, correctionCount, count) {
              const short = Math.floor(bytes.length / count) - correctionCount;
              const longBlocks = bytes.length % count;
              const blocks = Array.from({ length: count }, () => []);
              let at = 0;
              for (let i = 0; i <= short; i += 1) {
                for (let block = 0; block < count; block += 1) {
                  // The last blocks have one byte more.
                  if (i === short && block < count - longBlocks) continue;
                  blocks[block].push(bytes[at]);
                  at += 1;
                }
              }
              for (let i = 0; i < correctionCount; i += 1) for (const block of blocks) block.push(bytes[at++]);
              const data = [];
              for (const block of blocks) {
                const corrected = correct(block, correctionCount);
                if (!corrected) return null;
                data.push(...corrected.slice(0, block.length - correctionCount));
              }
              return data;
            }

            const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";

            /** Reads numbers, capitals and bytes, whose encoding is UTF-8; null for anything else. */
            function readSegments(data, version) {
              let at = 0;
              const left = () => data.length * 8 - at;
              const take = (count) => {
                let value = 0;
                for (let i = 0; i < count; i += 1, at += 1) value = value * 2 + ((data[at >> 3] >> (7 - (at & 7))) & 1);
                return value;
              };
              const lengths = { 1: [10, 12, 14], 2: [9, 11, 13], 4: [8, 16, 16] };
              const bytes = [];
              const push = (text) => bytes.push(...new TextEncoder().encode(text));
              while (left() >= 4) {
                const mode = take(4);
                if (mode === 0) break;
                if (mode === 7) {
                  // The number of an encoding: the texts of this app are ASCII or UTF-8.
                  take(8);
                  continue;
                }
                if (!(mode in lengths)) return null;
                const count = take(lengths[mode][version < 10 ? 0 : version < 27 ? 1 : 2]);
                for (let rest = count; rest > 0; ) {
                  const group = Math.min(rest, { 1: 3, 2: 2, 4: 1 }[mode]);
                  const width = mode === 1 ? [0, 4, 7, 10][group] : mode === 2 ? [0, 6, 11][group] : 8;
                  if (left() < width) return null;
                  const value = take(width);
                  if (mode === 4) bytes.push(value);
                  else if (mode === 1) push(String(value).padStart(group, "0"));
                  else push(group === 2 ? (alphanumeric[Math.floor(value / 45)] ?? "") + alphanumeric[value % 45] : alphanumeric[value] ?? "");
                  rest -= group;
                }
              }
              try {
                return new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(bytes));
              } catch {
                return null;
              }
            }

            """#)
}
