// Finds QR codes in a picture: dark and light, the three finder patterns, the alignment pattern,
// and the modules between them.

import { alignmentPlaces } from "./qr-grid.js";

/** The combinations of finder patterns that are tried: a picture must not take long. */
const mostTriples = 6;

/** Yields the grids {size, get(x, y)} that may be a code, the likelier ones first. */
export function* findGrids(picture) {
  const image = binarize(picture);
  for (const [corner, right, below] of triples(findPatterns(image))) {
    // Rows and columns cross a turned pattern at a slant, which makes it look larger.
    const slant = Math.max(Math.abs(right.x - corner.x), Math.abs(right.y - corner.y)) / distance(corner, right);
    const module = ((corner.module + right.module + below.module) / 3) * slant;
    const length = (distance(corner, right) + distance(corner, below)) / 2 / module + 7;
    const version = Math.round((length - 17) / 4);
    for (const one of [version, version - 1, version + 1, version + 2, version - 2]) {
      if (one < 1 || one > 40) continue;
      for (const grid of sampled(image, { corner, right, below }, one)) yield grid;
    }
  }
}

/** Dark and light by the mean of the surroundings, so that shadows do not matter. */
function binarize({ data, width, height }) {
  const grey = new Uint8Array(width * height);
  for (let at = 0; at < grey.length; at += 1) grey[at] = (data[4 * at] * 2 + data[4 * at + 1] * 5 + data[4 * at + 2]) >> 3;
  const sums = new Float64Array((width + 1) * (height + 1));
  for (let y = 0; y < height; y += 1) {
    let row = 0;
    for (let x = 0; x < width; x += 1) {
      row += grey[y * width + x];
      sums[(y + 1) * (width + 1) + x + 1] = sums[y * (width + 1) + x + 1] + row;
    }
  }
  const reach = Math.max(8, Math.round(Math.min(width, height) / 12));
  const dark = new Uint8Array(width * height);
  for (let y = 0; y < height; y += 1) {
    const [top, bottom] = [Math.max(0, y - reach), Math.min(height, y + reach + 1)];
    for (let x = 0; x < width; x += 1) {
      const [left, end] = [Math.max(0, x - reach), Math.min(width, x + reach + 1)];
      const sum = sums[bottom * (width + 1) + end] - sums[top * (width + 1) + end]
        - sums[bottom * (width + 1) + left] + sums[top * (width + 1) + left];
      const mean = sum / ((bottom - top) * (end - left));
      dark[y * width + x] = grey[y * width + x] < mean - 4 ? 1 : 0;
    }
  }
  const isDark = (x, y) => x >= 0 && y >= 0 && x < width && y < height && dark[Math.floor(y) * width + Math.floor(x)] === 1;
  return { width, height, isDark };
}

/** Whether five runs are as long as those of a finder pattern: 1, 1, 3, 1, 1. */
function isPattern(runs) {
  const total = runs.reduce((sum, one) => sum + one, 0);
  if (total < 7 || runs.some((one) => one === 0)) return false;
  const module = total / 7;
  return runs.every((one, at) => Math.abs(one - module * [1, 1, 3, 1, 1][at]) < module * (at === 2 ? 1.5 : 0.75));
}

/**
 * The finder patterns {x, y, module, count}; `count` is the number of rows that cross the middle.
 */
function findPatterns(image) {
  const found = [];
  for (let y = 0; y < image.height; y += 2) {
    let runs = [];
    let start = 0;
    for (let x = 1; x <= image.width; x += 1) {
      if (x < image.width && image.isDark(x, y) === image.isDark(x - 1, y)) continue;
      runs.push(x - start);
      start = x;
      if (runs.length > 5) runs.shift();
      // The last run was dark, so the first of five was, too.
      if (runs.length < 5 || !image.isDark(x - 1, y) || !isPattern(runs)) continue;
      add(found, image, x - runs[4] - runs[3] - runs[2] / 2, y);
    }
  }
  return found.filter(({ count }) => count >= 2).sort((one, other) => other.count - one.count).slice(0, 8);
}

function add(found, image, x, y) {
  const down = across(image, Math.floor(x), y, 0, 1);
  if (!down) return;
  const along = across(image, Math.floor(x), Math.floor(down.middle), 1, 0);
  if (!along) return;
  const centre = { x: along.middle, y: down.middle };
  const module = (down.length + along.length) / 14;
  const known = found.find((one) => Math.hypot(one.x - centre.x, one.y - centre.y) < 2.5 * Math.max(module, one.module));
  if (!known) {
    found.push({ ...centre, module, count: 1 });
    return;
  }
  for (const [name, value] of [["x", centre.x], ["y", centre.y], ["module", module]]) {
    known[name] = (known[name] * known.count + value) / (known.count + 1);
  }
  known.count += 1;
}

/**
 * Measures the five runs around a dark pixel along one axis: {length, middle}, with the middle of
 * the pattern on that axis; null if they are no pattern.
 */
function across(image, x, y, dx, dy) {
  const walk = (sign) => {
    const runs = [0, 0, 0];
    let [part, isDark] = [0, true];
    for (let step = sign > 0 ? 0 : 1; part < 3; step += 1) {
      const [px, py] = [x + dx * step * sign, y + dy * step * sign];
      if (px < 0 || py < 0 || px >= image.width || py >= image.height) break;
      if (image.isDark(px, py) !== isDark) {
        isDark = !isDark;
        part += 1;
        if (part === 3) break;
      }
      runs[part] += 1;
    }
    return runs;
  };
  const [after, before] = [walk(1), walk(-1)];
  const runs = [before[2], before[1], before[0] + after[0], after[1], after[2]];
  if (!isPattern(runs)) return null;
  return { length: runs.reduce((sum, one) => sum + one, 0), middle: x * dx + y * dy + (after[0] - before[0]) / 2 };
}

const distance = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);

/** Three patterns as [corner, right, below], of about one size and nearly at a right angle. */
function triples(patterns) {
  const found = [];
  for (const corner of patterns) {
    for (const right of patterns) {
      for (const below of patterns) {
        if (corner === right || corner === below || right === below) continue;
        const cross = (right.x - corner.x) * (below.y - corner.y) - (right.y - corner.y) * (below.x - corner.x);
        const dot = (right.x - corner.x) * (below.x - corner.x) + (right.y - corner.y) * (below.y - corner.y);
        const [a, b] = [distance(corner, right), distance(corner, below)];
        const sizes = [corner, right, below].map(({ module }) => module);
        // A code that is mirrored has its corners in the other order, and is none.
        if (cross <= 0 || Math.abs(dot) > 0.4 * a * b || Math.max(a, b) > 1.6 * Math.min(a, b)) continue;
        if (Math.max(...sizes) > 1.8 * Math.min(...sizes)) continue;
        found.push({ corners: [corner, right, below], fault: Math.abs(dot) / (a * b) + Math.abs(a - b) / Math.max(a, b) });
      }
    }
  }
  return found.sort((one, other) => one.fault - other.fault).map(({ corners }) => corners).slice(0, mostTriples);
}

/** The grids of one version: by the alignment pattern if it is found, and without it. */
function* sampled(image, { corner, right, below }, version) {
  const size = version * 4 + 17;
  const span = size - 7;
  const along = { x: (right.x - corner.x) / span, y: (right.y - corner.y) / span };
  const down = { x: (below.x - corner.x) / span, y: (below.y - corner.y) / span };
  const fourth = { x: right.x + below.x - corner.x, y: right.y + below.y - corner.y };
  const known = [[3.5, 3.5], [size - 3.5, 3.5], [3.5, size - 3.5]];
  const plain = gridOf(image, size, [...known, [size - 3.5, size - 3.5]], [corner, right, below, fourth]);
  if (version > 1) {
    const place = alignmentPlaces(version).at(-1) + 0.5;
    const expected = {
      x: fourth.x - (along.x + down.x) * (size - 3.5 - place), y: fourth.y - (along.y + down.y) * (size - 3.5 - place),
    };
    const mark = findAlignment(image, expected, along, down, Math.max(5, size / 5));
    if (mark) yield gridOf(image, size, [...known, [place, place]], [corner, right, below, mark]);
  }
  yield plain;
}

/**
 * The place that looks most like an alignment pattern, `modules` from the expected one at most;
 * null if none does. Perspective moves it the farther, the larger the code is.
 */
function findAlignment(image, expected, along, down, modules) {
  const module = (Math.hypot(along.x, along.y) + Math.hypot(down.x, down.y)) / 2;
  const reach = module * modules;
  const step = Math.max(1, module / 4);
  let best = { score: 21 };
  for (let dy = -reach; dy <= reach; dy += step) {
    for (let dx = -reach; dx <= reach; dx += step) {
      let score = 0;
      for (let v = -2; v <= 2; v += 1) {
        for (let u = -2; u <= 2; u += 1) {
          const isDark = Math.max(Math.abs(u), Math.abs(v)) !== 1;
          const [x, y] = [expected.x + dx + u * along.x + v * down.x, expected.y + dy + u * along.y + v * down.y];
          if (image.isDark(x, y) === isDark) score += 1;
        }
      }
      const far = Math.hypot(dx, dy);
      if (score > best.score || (score === best.score && far < best.far)) best = { score, far, x: expected.x + dx, y: expected.y + dy };
    }
  }
  return best.score > 21 ? centred(image, best, along, down) : null;
}

/** Moves to the middle of the dark module in the middle of the pattern. */
function centred(image, { x, y }, along, down) {
  const middle = (vector) => {
    const edge = (sign) => {
      let at = 0;
      while (at < 1.5 && image.isDark(x + vector.x * at * sign, y + vector.y * at * sign)) at += 0.1;
      return at;
    };
    return (edge(1) - edge(-1)) / 2;
  };
  const [u, v] = [middle(along), middle(down)];
  return { x: x + along.x * u + down.x * v, y: y + along.y * u + down.y * v };
}

function gridOf(image, size, from, to) {
  const map = perspective(from, to);
  return {
    size,
    get: (x, y) => {
      const place = map(x + 0.5, y + 0.5);
      return image.isDark(place.x, place.y);
    },
  };
}

/** The perspective that takes four places of the code to four places of the picture. */
function perspective(from, to) {
  const rows = from.flatMap(([u, v], at) => [
    [u, v, 1, 0, 0, 0, -u * to[at].x, -v * to[at].x, to[at].x],
    [0, 0, 0, u, v, 1, -u * to[at].y, -v * to[at].y, to[at].y],
  ]);
  for (let column = 0; column < 8; column += 1) {
    const pivot = rows.slice(column).reduce((best, row) => (Math.abs(row[column]) > Math.abs(best[column]) ? row : best));
    const at = rows.indexOf(pivot);
    [rows[column], rows[at]] = [rows[at], rows[column]];
    for (let row = 0; row < 8; row += 1) {
      if (row === column) continue;
      const factor = rows[row][column] / rows[column][column];
      for (let i = column; i < 9; i += 1) rows[row][i] -= factor * rows[column][i];
    }
  }
  const [a, b, c, d, e, f, g, h] = rows.map((row, at) => row[8] / row[at]);
  return (u, v) => {
    const w = g * u + h * v + 1;
    return { x: (a * u + b * v + c) / w, y: (d * u + e * v + f) / w };
  };
}
