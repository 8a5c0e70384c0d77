/**
 * A QR code (ISO/IEC 18004) of a text: byte mode, level M, all versions, as SVG.
 *
 * The package draws it itself, because the text holds the website's secret `k`: no other server and
 * no other package may see it. Coordinates are (x, y), from the corner at the top left.
 */

/** Error correction bytes of each block, and the number of blocks, of level M by version - 1. */
const CORRECTION = [
  10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26,
  26, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28,
];
const BLOCKS = [
  1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16,
  17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35, 37, 38, 40, 43, 45, 47, 49,
];
const LEVEL_M = 0;
const BYTE_MODE = 4;
const PADDING = [0xec, 0x11];

const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (x, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

const BORDER = 4;
const SCALE = 4;

/** The QR code of a text as an `svg` element, with a title for those who cannot see it. */
export function drawQR(text, title) {
  const rows = encodeQR(new TextEncoder().encode(text));
  const size = rows.length + 2 * BORDER;
  let path = "";
  rows.forEach((row, y) => {
    for (let x = 0; x < row.length; x++) {
      if (!row[x]) continue;
      const start = x;
      while (row[x + 1]) x++;
      path += `M${start + BORDER} ${y + BORDER}h${x - start + 1}v1h${start - x - 1}z`;
    }
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="${size * SCALE}"`
    + ` height="${size * SCALE}" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges">`
    + `<title>${title}</title><path fill="#fff" d="M0 0h${size}v${size}H0z"/>`
    + `<path d="${path}"/></svg>`;
}

/** The modules of a QR code by row, true for dark ones. `wish` fixes the mask, for tests. */
export function encodeQR(bytes, wish = null) {
  const version = versionFor(bytes.length);
  const frame = drawFrame(version);
  const codewords = withCorrection(codewordsOf(bytes, version), version);
  const candidates = (wish === null ? MASKS.keys() : [wish]);
  let best = null, least = Infinity;
  for (const mask of candidates) {
    const rows = frame.dark.map((row) => [...row]);
    drawFormat(rows, null, mask);
    placeCodewords(rows, frame.isFixed, codewords, MASKS[mask]);
    const penalty = penaltyOf(rows);
    if (penalty < least) [best, least] = [rows, penalty];
  }
  return best;
}

// Capacity

function sizeOf(version) {
  return 17 + 4 * version;
}

/** How many codewords a version holds: all modules but those with a fixed meaning. */
function codewordsIn(version) {
  let modules = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const count = Math.floor(version / 7) + 2;
    modules -= (25 * count - 10) * count - 55;
  }
  return Math.floor((version >= 7 ? modules - 36 : modules) / 8);
}

function dataCodewordsIn(version) {
  return codewordsIn(version) - CORRECTION[version - 1] * BLOCKS[version - 1];
}

/** Bits of the length of a text. */
function lengthBits(version) {
  return version < 10 ? 8 : 16;
}

function versionFor(length) {
  for (let version = 1; version <= 40; version++) {
    if (4 + lengthBits(version) + 8 * length <= 8 * dataCodewordsIn(version)) return version;
  }
  throw new RangeError("the text is too long for a QR code");
}

// Data

function codewordsOf(bytes, version) {
  const capacity = dataCodewordsIn(version);
  const bits = [];
  const append = (value, count) => {
    for (let at = count - 1; at >= 0; at--) bits.push((value >> at) & 1);
  };
  append(BYTE_MODE, 4);
  append(bytes.length, lengthBits(version));
  for (const byte of bytes) append(byte, 8);
  append(0, Math.min(4, 8 * capacity - bits.length));
  append(0, -bits.length & 7);
  const codewords = [];
  for (let at = 0; at < bits.length; at += 8) {
    codewords.push(parseInt(bits.slice(at, at + 8).join(""), 2));
  }
  for (let at = 0; codewords.length < capacity; at++) codewords.push(PADDING[at % 2]);
  return codewords;
}

/** Splits the data into blocks, adds the error correction of each, and interleaves them. */
function withCorrection(data, version) {
  const count = BLOCKS[version - 1], correction = CORRECTION[version - 1];
  const shortest = Math.floor(data.length / count);
  const long = data.length % count; // so many blocks, the last ones, have a byte more
  const generator = generatorOf(correction);
  const blocks = [];
  for (let block = 0, at = 0; block < count; block++) {
    const end = at + shortest + (block >= count - long ? 1 : 0);
    blocks.push(data.slice(at, end));
    at = end;
  }
  const remainders = blocks.map((block) => remainderOf(block, generator));
  return [...interleaved(blocks), ...interleaved(remainders)];
}

function interleaved(blocks) {
  const longest = Math.max(...blocks.map((block) => block.length));
  const result = [];
  for (let at = 0; at < longest; at++) {
    for (const block of blocks) {
      if (at < block.length) result.push(block[at]);
    }
  }
  return result;
}

/** Multiplies in the field with 256 elements, modulo x^8 + x^4 + x^3 + x^2 + 1. */
function multiply(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) {
    product = (product << 1) ^ ((product >> 7) * 0x11d);
    product ^= ((b >> bit) & 1) * a;
  }
  return product;
}

/** The product of x - 2^i for each i below the degree, without the first coefficient, a 1. */
function generatorOf(degree) {
  const result = new Array(degree).fill(0);
  result[degree - 1] = 1;
  for (let round = 0, root = 1; round < degree; round++, root = multiply(root, 2)) {
    for (let at = 0; at < degree; at++) {
      result[at] = multiply(result[at], root) ^ (result[at + 1] ?? 0);
    }
  }
  return result;
}

function remainderOf(data, generator) {
  const result = new Array(generator.length).fill(0);
  for (const byte of data) {
    const factor = byte ^ result.shift();
    result.push(0);
    generator.forEach((coefficient, at) => (result[at] ^= multiply(coefficient, factor)));
  }
  return result;
}

// Drawing

/** All patterns that do not depend on the data, and which modules they fix. */
function drawFrame(version) {
  const size = sizeOf(version);
  const table = () => Array.from({ length: size }, () => new Array(size).fill(false));
  const dark = table(), isFixed = table();
  const set = (x, y, value) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    dark[y][x] = value;
    isFixed[y][x] = true;
  };
  for (let at = 0; at < size; at++) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) {
    drawSquares(set, x, y, 4, (distance) => distance !== 2 && distance !== 4);
  }
  const centres = centresOf(version);
  const last = centres.at(-1);
  for (const x of centres) {
    for (const y of centres) {
      const isFinder = (x === 6 && (y === 6 || y === last)) || (x === last && y === 6);
      if (!isFinder) drawSquares(set, x, y, 2, (distance) => distance !== 1);
    }
  }
  drawFormat(dark, isFixed, 0);
  if (version >= 7) drawVersion(set, version);
  return { dark, isFixed };
}

/** Draws squares around a centre; `isDark` says by the distance which are dark. */
function drawSquares(set, x, y, radius, isDark) {
  for (let dy = -radius; dy <= radius; dy++) {
    for (let dx = -radius; dx <= radius; dx++) {
      set(x + dx, y + dy, isDark(Math.max(Math.abs(dx), Math.abs(dy))));
    }
  }
}

/** The coordinates of the alignment patterns, evenly spread and the same in both directions. */
function centresOf(version) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.floor((8 * version + 3 * count + 5) / (4 * count - 4)) * 2;
  const centres = [];
  for (let at = sizeOf(version) - 7; centres.length < count - 1; at -= step) centres.unshift(at);
  return [6, ...centres];
}

/** The remainder of a division of polynomials over two elements. */
function checkBits(value, bits, generator) {
  let rest = value;
  for (let round = 0; round < bits; round++) {
    rest = (rest << 1) ^ ((rest >> (bits - 1)) * generator);
  }
  return (value << bits) | rest;
}

/** Draws the level and the mask, twice. With `isFixed`, it also takes the modules for them. */
function drawFormat(dark, isFixed, mask) {
  const size = dark.length;
  const bits = checkBits((LEVEL_M << 3) | mask, 10, 0x537) ^ 0x5412;
  const set = (x, y, value) => {
    dark[y][x] = value;
    if (isFixed) isFixed[y][x] = true;
  };
  const bit = (at) => ((bits >> at) & 1) === 1;
  for (let at = 0; at < 15; at++) {
    // Around the finder pattern at the top left, past the timing patterns.
    if (at < 8) set(8, at < 6 ? at : at + 1, bit(at));
    else set(at === 8 ? 7 : 14 - at, 8, bit(at));
    // Beside the other two.
    if (at < 8) set(size - 1 - at, 8, bit(at));
    else set(8, size - 15 + at, bit(at));
  }
  set(8, size - 8, true);
}

function drawVersion(set, version) {
  const bits = checkBits(version, 12, 0x1f25);
  const size = sizeOf(version);
  for (let at = 0; at < 18; at++) {
    const a = size - 11 + (at % 3), b = Math.floor(at / 3);
    set(a, b, ((bits >> at) & 1) === 1);
    set(b, a, ((bits >> at) & 1) === 1);
  }
}

/** Places the codewords in columns of two, upwards and downwards, from the right to the left. */
function placeCodewords(rows, isFixed, codewords, isInverted) {
  const size = rows.length;
  let at = 0, isUpward = true;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right = 5; // the timing pattern
    for (let step = 0; step < size; step++) {
      const y = isUpward ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (isFixed[y][x]) continue;
        const bit = ((codewords[at >> 3] ?? 0) >> (7 - (at & 7))) & 1; // some modules remain
        rows[y][x] = (bit === 1) !== isInverted(x, y);
        at++;
      }
    }
    isUpward = !isUpward;
  }
}

// Masks

/** How hard a code is to read: long runs, squares, patterns like the finder's, uneven darkness. */
function penaltyOf(rows) {
  const size = rows.length;
  const columns = rows.map((_, x) => rows.map((row) => row[x]));
  let penalty = 0, dark = 0;
  for (const line of [...rows, ...columns]) penalty += penaltyOfLine(line);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      if (rows[y][x]) dark++;
      if (x === 0 || y === 0) continue;
      const value = rows[y][x];
      const others = [rows[y][x - 1], rows[y - 1][x], rows[y - 1][x - 1]];
      if (others.every((other) => other === value)) penalty += 3;
    }
  }
  const share = (100 * dark) / (size * size);
  return penalty + 10 * Math.floor(Math.abs(share - 50) / 5);
}

function penaltyOfLine(line) {
  const text = line.map((isDark) => (isDark ? "1" : "0")).join("");
  let penalty = 0;
  for (const [run] of text.matchAll(/0{5,}|1{5,}/g)) penalty += run.length - 2;
  for (const pattern of ["10111010000", "00001011101"]) {
    for (let at = text.indexOf(pattern); at >= 0; at = text.indexOf(pattern, at + 1)) penalty += 40;
  }
  return penalty;
}
