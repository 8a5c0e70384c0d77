<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * A QR code (ISO/IEC 18004) of bytes, with error correction level M.
 *
 * The client draws it itself, because it holds the secret `k`, which neither the relay nor a
 * service that draws codes may see. It takes the smallest version that holds the text. Without a
 * reader that can fail, a wrong code is only found by a real decoder: the tests read all versions
 * with zbar.
 */
final class QrCode
{
    /** Codewords of error correction in each block, by version. */
    private const CORRECTION = [
        1 => 10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26,
        26, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    ];

    /** Blocks, by version. */
    private const BLOCKS = [
        1 => 1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16,
        17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35, 37, 38, 40, 43, 45, 47, 49,
    ];

    private readonly int $size;

    /** @var list<list<int>> 1 for a dark module, by row and column */
    private array $modules;

    /** @var list<list<bool>> whether a module belongs to a pattern, and holds no data */
    private array $isPattern;

    private function __construct(private readonly int $version)
    {
        $this->size = 17 + 4 * $version;
        $this->modules = array_fill(0, $this->size, array_fill(0, $this->size, 0));
        $this->isPattern = array_fill(0, $this->size, array_fill(0, $this->size, false));
    }

    public static function of(#[\SensitiveParameter] string $text): self
    {
        for ($version = 1; $version <= 40; $version++) {
            if (strlen($text) <= self::capacity($version)) {
                return self::draw($version, $text);
            }
        }
        throw new \LengthException('the text is too long for a QR code');
    }

    /** The bytes that a version holds. */
    public static function capacity(int $version): int
    {
        return self::dataCodewords($version) - ($version < 10 ? 2 : 3); // the mode and the length
    }

    /** @return list<list<int>> 1 for a dark module, by row and column */
    public function modules(): array
    {
        return $this->modules;
    }

    /** The code as SVG, to stand in HTML. It needs no style, so a strict policy allows it. */
    public function svg(string $title): string
    {
        $path = '';
        foreach ($this->modules as $y => $row) {
            foreach ($row as $x => $isDark) {
                if ($isDark === 1) {
                    $path .= sprintf('M%d %dh1v1h-1z', $x + 4, $y + 4);
                }
            }
        }
        $side = $this->size + 8; // with the quiet zone
        $title = htmlspecialchars($title);
        return '<svg xmlns="http://www.w3.org/2000/svg" role="img"'
            . sprintf(' viewBox="0 0 %1$d %1$d" width="%2$d" height="%2$d"', $side, 4 * $side)
            . " shape-rendering=\"crispEdges\"><title>$title</title>"
            . "<path fill=\"#fff\" d=\"M0 0h{$side}v{$side}H0z\"/><path d=\"$path\"/></svg>";
    }

    private static function draw(int $version, string $text): self
    {
        $code = new self($version);
        $code->drawPatterns();
        $code->drawData(self::codewords($version, $text));
        $best = null;
        $least = PHP_INT_MAX;
        for ($mask = 0; $mask < 8; $mask++) {
            $masked = clone $code;
            $masked->applyMask($mask);
            $masked->drawFormat($mask);
            $penalty = $masked->penalty();
            if ($penalty < $least) {
                [$best, $least] = [$masked, $penalty];
            }
        }
        return $best;
    }

    // MARK: Codewords

    /** Modules that hold data and its correction. */
    private static function rawModules(int $version): int
    {
        $modules = (16 * $version + 128) * $version + 64;
        if ($version >= 2) {
            $aligned = intdiv($version, 7) + 2;
            $modules -= (25 * $aligned - 10) * $aligned - 55;
            $modules -= $version >= 7 ? 36 : 0; // the number of the version
        }
        return $modules;
    }

    private static function dataCodewords(int $version): int
    {
        $correction = self::CORRECTION[$version] * self::BLOCKS[$version];
        return intdiv(self::rawModules($version), 8) - $correction;
    }

    /**
     * All codewords in the order in which they are drawn.
     *
     * @return list<int>
     */
    private static function codewords(int $version, string $text): array
    {
        $bits = '0100' . sprintf($version < 10 ? '%08b' : '%016b', strlen($text));
        foreach (unpack('C*', $text) as $byte) {
            $bits .= sprintf('%08b', $byte);
        }
        $bits .= '0000'; // the end, which also fills the last codeword
        $data = array_map(bindec(...), str_split($bits, 8));
        for ($pad = 0xec; count($data) < self::dataCodewords($version); $pad ^= 0xfd) {
            $data[] = $pad; // 0xec and 0x11 in turn
        }
        return self::interleave($version, $data);
    }

    /**
     * Splits the data into blocks, adds the correction of each, and takes codewords from all in
     * turn.
     *
     * @param list<int> $data
     * @return list<int>
     */
    private static function interleave(int $version, array $data): array
    {
        $count = self::BLOCKS[$version];
        $short = intdiv(count($data), $count); // the last blocks have one more
        $longer = count($data) % $count;
        $divisor = self::divisor(self::CORRECTION[$version]);
        $blocks = $corrections = [];
        $at = 0;
        for ($i = 0; $i < $count; $i++) {
            $length = $short + ($i >= $count - $longer ? 1 : 0);
            $blocks[] = array_slice($data, $at, $length);
            $corrections[] = self::remainder($blocks[$i], $divisor);
            $at += $length;
        }
        $all = [];
        foreach ([$blocks, $corrections] as $part) {
            $longest = max(array_map(count(...), $part));
            for ($i = 0; $i < $longest; $i++) {
                array_push($all, ...array_column($part, $i));
            }
        }
        return $all;
    }

    // MARK: Reed-Solomon codes over GF(256)

    private static function multiply(int $a, int $b): int
    {
        $product = 0;
        for ($bit = 7; $bit >= 0; $bit--) {
            $product = ($product << 1) ^ (($product >> 7) * 0x11d);
            $product ^= (($b >> $bit) & 1) * $a;
        }
        return $product;
    }

    /**
     * The generator polynomial of this degree, without its leading 1.
     *
     * @return list<int>
     */
    private static function divisor(int $degree): array
    {
        $result = array_fill(0, $degree, 0);
        $result[$degree - 1] = 1;
        $root = 1;
        for ($i = 0; $i < $degree; $i++) {
            for ($j = 0; $j < $degree; $j++) {
                $result[$j] = self::multiply($result[$j], $root) ^ ($result[$j + 1] ?? 0);
            }
            $root = self::multiply($root, 2);
        }
        return $result;
    }

    /**
     * @param list<int> $data
     * @param list<int> $divisor
     * @return list<int>
     */
    private static function remainder(array $data, array $divisor): array
    {
        $result = array_fill(0, count($divisor), 0);
        foreach ($data as $codeword) {
            $factor = $codeword ^ array_shift($result);
            $result[] = 0;
            foreach ($divisor as $i => $coefficient) {
                $result[$i] ^= self::multiply($coefficient, $factor);
            }
        }
        return $result;
    }

    // MARK: Patterns

    private function set(int $x, int $y, bool|int $isDark): void
    {
        $this->modules[$y][$x] = (int) $isDark;
        $this->isPattern[$y][$x] = true;
    }

    private function drawPatterns(): void
    {
        for ($i = 0; $i < $this->size; $i++) {
            $this->set(6, $i, $i % 2 === 0);
            $this->set($i, 6, $i % 2 === 0);
        }
        $end = $this->size - 4;
        foreach ([[3, 3], [$end, 3], [3, $end]] as [$x, $y]) {
            $this->drawFinder($x, $y);
        }
        $places = $this->alignments();
        $last = count($places) - 1;
        foreach ($places as $i => $x) {
            foreach ($places as $j => $y) {
                $isFinder = in_array([$i, $j], [[0, 0], [0, $last], [$last, 0]], true);
                if (!$isFinder) {
                    $this->drawAlignment($x, $y);
                }
            }
        }
        $this->drawFormat(0); // reserves its modules
        $this->drawVersion();
    }

    private function drawFinder(int $x, int $y): void
    {
        for ($dy = -4; $dy <= 4; $dy++) {
            for ($dx = -4; $dx <= 4; $dx++) {
                $isInside = min($x + $dx, $y + $dy) >= 0 && max($x + $dx, $y + $dy) < $this->size;
                if ($isInside) {
                    $ring = max(abs($dx), abs($dy));
                    $this->set($x + $dx, $y + $dy, $ring !== 2 && $ring !== 4);
                }
            }
        }
    }

    private function drawAlignment(int $x, int $y): void
    {
        for ($dy = -2; $dy <= 2; $dy++) {
            for ($dx = -2; $dx <= 2; $dx++) {
                $this->set($x + $dx, $y + $dy, max(abs($dx), abs($dy)) !== 1);
            }
        }
    }

    /** @return list<int> the columns and rows of the alignment patterns */
    private function alignments(): array
    {
        if ($this->version === 1) {
            return [];
        }
        $count = intdiv($this->version, 7) + 2;
        $step = intdiv($this->version * 8 + $count * 3 + 5, $count * 4 - 4) * 2;
        $places = [6];
        for ($i = $count - 2; $i >= 0; $i--) {
            $places[] = $this->size - 7 - $i * $step;
        }
        return $places;
    }

    /** The level and the mask, twice, with their correction. */
    private function drawFormat(int $mask): void
    {
        $remainder = $mask; // level M is 00
        for ($i = 0; $i < 10; $i++) {
            $remainder = ($remainder << 1) ^ (($remainder >> 9) * 0x537);
        }
        $bits = ($mask << 10 | $remainder) ^ 0x5412;
        $bit = static fn(int $i): int => ($bits >> $i) & 1;
        for ($i = 0; $i < 6; $i++) {
            $this->set(8, $i, $bit($i));
            $this->set(5 - $i, 8, $bit(9 + $i));
        }
        $this->set(8, 7, $bit(6));
        $this->set(8, 8, $bit(7));
        $this->set(7, 8, $bit(8));
        for ($i = 0; $i < 8; $i++) {
            $this->set($this->size - 1 - $i, 8, $bit($i));
        }
        for ($i = 8; $i < 15; $i++) {
            $this->set(8, $this->size - 15 + $i, $bit($i));
        }
        $this->set(8, $this->size - 8, 1);
    }

    private function drawVersion(): void
    {
        if ($this->version < 7) {
            return;
        }
        $remainder = $this->version;
        for ($i = 0; $i < 12; $i++) {
            $remainder = ($remainder << 1) ^ (($remainder >> 11) * 0x1f25);
        }
        $bits = $this->version << 12 | $remainder;
        for ($i = 0; $i < 18; $i++) {
            $near = $this->size - 11 + $i % 3;
            $this->set($near, intdiv($i, 3), ($bits >> $i) & 1);
            $this->set(intdiv($i, 3), $near, ($bits >> $i) & 1);
        }
    }

    // MARK: Data and masks

    /** @param list<int> $codewords */
    private function drawData(array $codewords): void
    {
        $at = 0;
        // In pairs of columns from the right, upwards and downwards in turn, past the timing
        // column.
        for ($right = $this->size - 1; $right >= 1; $right -= $right === 8 ? 3 : 2) {
            $isUpward = (($right + 1) & 2) === 0;
            for ($i = 0; $i < $this->size; $i++) {
                $y = $isUpward ? $this->size - 1 - $i : $i;
                foreach ([$right, $right - 1] as $x) {
                    if (!$this->isPattern[$y][$x] && $at < 8 * count($codewords)) {
                        $this->modules[$y][$x] = ($codewords[$at >> 3] >> (7 - ($at & 7))) & 1;
                        $at++;
                    }
                }
            }
        }
    }

    private function applyMask(int $mask): void
    {
        for ($y = 0; $y < $this->size; $y++) {
            for ($x = 0; $x < $this->size; $x++) {
                if (!$this->isPattern[$y][$x]) {
                    $this->modules[$y][$x] ^= (int) self::isMasked($mask, $x, $y);
                }
            }
        }
    }

    private static function isMasked(int $mask, int $x, int $y): bool
    {
        return match ($mask) {
            0 => ($x + $y) % 2,
            1 => $y % 2,
            2 => $x % 3,
            3 => ($x + $y) % 3,
            4 => (intdiv($x, 3) + intdiv($y, 2)) % 2,
            5 => $x * $y % 2 + $x * $y % 3,
            6 => ($x * $y % 2 + $x * $y % 3) % 2,
            7 => (($x + $y) % 2 + $x * $y % 3) % 2,
        } === 0;
    }

    /** How hard the code is to read. The mask with the least counts. */
    private function penalty(): int
    {
        $rows = array_map(implode(...), $this->modules);
        $columns = array_map(implode(...), array_map(null, ...$this->modules));
        $penalty = 0;
        foreach ([...$rows, ...$columns] as $line) {
            preg_match_all('/0{5,}|1{5,}/', $line, $runs); // runs of one colour
            foreach ($runs[0] as $run) {
                $penalty += strlen($run) - 2;
            }
            // What looks like a finder pattern, with four light modules beside it.
            $penalty += 40 * preg_match_all('/(?=10111010000|00001011101)/', "0000{$line}0000");
        }
        for ($y = 1; $y < $this->size; $y++) { // squares of one colour
            for ($x = 1; $x < $this->size; $x++) {
                $square = substr($rows[$y - 1], $x - 1, 2) . substr($rows[$y], $x - 1, 2);
                $penalty += $square === '0000' || $square === '1111' ? 3 : 0;
            }
        }
        $dark = substr_count(implode($rows), '1') * 20;
        $all = $this->size * $this->size;
        return $penalty + 10 * (intdiv(abs($dark - 10 * $all) + $all - 1, $all) - 1);
    }
}
