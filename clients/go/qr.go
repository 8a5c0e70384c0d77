package twoefay

import (
	"errors"
	"fmt"
	"html"
	"strings"
)

// A QR code (ISO/IEC 18004) in byte mode with error correction of level M, in versions 1 to 40. It
// is drawn here since its text holds k, which the relay must never see.
//
// The text becomes codewords. These are split into blocks, each block gets codewords for error
// correction, and all are interleaved. They fill the modules that no pattern occupies, in a zigzag
// from the lower right. One of eight masks, chosen by penalties, breaks up large areas.

// Error correction of level M by version: codewords for each block, and blocks.
var (
	qrCorrection = [41]int{0,
		10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26,
		26, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28}
	qrBlocks = [41]int{0,
		1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16,
		17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35, 37, 38, 40, 43, 45, 47, 49}
)

const (
	qrScale  = 4
	qrBorder = 4
)

// drawQR returns an SVG that can stand in HTML. It needs no style, so every policy allows it.
func drawQR(data []byte, title string) (string, error) {
	code, err := makeQR(data)
	if err != nil {
		return "", err
	}
	width := code.size + 2*qrBorder
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`,
		width*qrScale, width*qrScale, width, width)
	fmt.Fprintf(&svg, `<title>%s</title><path fill="#fff" d="M0 0h%dv%dH0z"/><path d="`,
		html.EscapeString(title), width, width)
	for y := 0; y < code.size; y++ {
		for x := 0; x < code.size; x++ {
			begin := x
			for x < code.size && code.dark[y][x] {
				x++
			}
			if x > begin {
				fmt.Fprintf(&svg, "M%d %dh%dv1H%dz", begin+qrBorder, y+qrBorder, x-begin, begin+qrBorder)
			}
		}
	}
	svg.WriteString(`"/></svg>`)
	return svg.String(), nil
}

// qrCode is a square of modules. Patterns are fixed modules, which carry no data.
type qrCode struct {
	version, size int
	dark, pattern [][]bool
}

func makeQR(data []byte) (*qrCode, error) {
	version, err := qrVersion(len(data))
	if err != nil {
		return nil, err
	}
	code := &qrCode{version: version, size: 17 + 4*version}
	for i := 0; i < code.size; i++ {
		code.dark = append(code.dark, make([]bool, code.size))
		code.pattern = append(code.pattern, make([]bool, code.size))
	}
	code.drawPatterns()
	code.drawData(qrInterleave(qrData(data, version), version))
	best, least := 0, -1
	for mask := 0; mask < 8; mask++ {
		code.drawFormat(mask)
		code.applyMask(mask)
		if penalty := code.penalty(); least < 0 || penalty < least {
			best, least = mask, penalty
		}
		code.applyMask(mask) // a second time undoes it
	}
	code.drawFormat(best)
	code.applyMask(best)
	return code, nil
}

// MARK: Codewords

// qrVersion returns the smallest version that holds so many bytes.
func qrVersion(size int) (int, error) {
	for version := 1; version <= 40; version++ {
		if 4+qrCountBits(version)+8*size <= 8*qrDataCodewords(version) {
			return version, nil
		}
	}
	return 0, errors.New("twoefay: too long for a QR code")
}

func qrCountBits(version int) int {
	if version < 10 {
		return 8
	}
	return 16
}

// qrCodewords returns the number of all codewords: the modules without a pattern, in bytes.
func qrCodewords(version int) int {
	modules := (16*version+128)*version + 64
	if version >= 2 {
		lines := version/7 + 2
		modules -= (25*lines-10)*lines - 55
	}
	if version >= 7 {
		modules -= 36
	}
	return modules / 8
}

func qrDataCodewords(version int) int {
	return qrCodewords(version) - qrCorrection[version]*qrBlocks[version]
}

// qrData returns the codewords of the data: mode, length, bytes, end and padding.
func qrData(data []byte, version int) []byte {
	var bits []bool
	add := func(value, count int) {
		for i := count - 1; i >= 0; i-- {
			bits = append(bits, value>>i&1 == 1)
		}
	}
	add(4, 4)
	add(len(data), qrCountBits(version))
	for _, one := range data {
		add(int(one), 8)
	}
	capacity := qrDataCodewords(version)
	for i := 0; i < 4 && len(bits) < 8*capacity; i++ {
		add(0, 1)
	}
	for len(bits)%8 != 0 {
		add(0, 1)
	}
	codewords := make([]byte, len(bits)/8, capacity)
	for i, bit := range bits {
		if bit {
			codewords[i/8] |= 0x80 >> (i % 8)
		}
	}
	for padding := byte(0xec); len(codewords) < capacity; padding ^= 0xec ^ 0x11 {
		codewords = append(codewords, padding)
	}
	return codewords
}

// qrInterleave splits the codewords into blocks, adds the correction of each, and takes one
// codeword of each block in turn. The last blocks have one more data codeword than the first.
func qrInterleave(data []byte, version int) []byte {
	count, correction := qrBlocks[version], qrCorrection[version]
	divisor := qrDivisor(correction)
	short := len(data) / count
	longer := len(data) % count
	var blocks, corrections [][]byte
	for i, at := 0, 0; i < count; i++ {
		size := short
		if i >= count-longer {
			size++
		}
		blocks = append(blocks, data[at:at+size])
		corrections = append(corrections, qrRemainder(data[at:at+size], divisor))
		at += size
	}
	var all []byte
	for i := 0; i <= short; i++ {
		for _, block := range blocks {
			if i < len(block) {
				all = append(all, block[i])
			}
		}
	}
	for i := 0; i < correction; i++ {
		for _, block := range corrections {
			all = append(all, block[i])
		}
	}
	return all
}

// qrProduct multiplies in the field of 256 elements with the polynomial 0x11d.
func qrProduct(a, b byte) byte {
	product := 0
	for i := 7; i >= 0; i-- {
		product = product<<1 ^ product>>7*0x11d
		product ^= int(b>>i&1) * int(a)
	}
	return byte(product)
}

// qrDivisor returns the generator polynomial of a degree, without its first coefficient, which is
// 1.
func qrDivisor(degree int) []byte {
	divisor := make([]byte, degree)
	divisor[degree-1] = 1
	root := byte(1)
	for i := 0; i < degree; i++ {
		for j := range divisor {
			divisor[j] = qrProduct(divisor[j], root)
			if j+1 < degree {
				divisor[j] ^= divisor[j+1]
			}
		}
		root = qrProduct(root, 2)
	}
	return divisor
}

// qrRemainder returns the codewords for the error correction of a block.
func qrRemainder(data, divisor []byte) []byte {
	remainder := make([]byte, len(divisor))
	for _, one := range data {
		factor := one ^ remainder[0]
		copy(remainder, remainder[1:])
		remainder[len(remainder)-1] = 0
		for i, coefficient := range divisor {
			remainder[i] ^= qrProduct(coefficient, factor)
		}
	}
	return remainder
}

// MARK: Patterns

func (c *qrCode) set(x, y int, dark bool) {
	c.dark[y][x], c.pattern[y][x] = dark, true
}

func (c *qrCode) drawPatterns() {
	for i := 0; i < c.size; i++ {
		c.set(6, i, i%2 == 0)
		c.set(i, 6, i%2 == 0)
	}
	for _, center := range [][2]int{{3, 3}, {c.size - 4, 3}, {3, c.size - 4}} {
		c.drawRings(center[0], center[1], 4)
	}
	lines := c.alignmentLines()
	for i, x := range lines {
		for j, y := range lines {
			last := len(lines) - 1
			if isFinder := i == 0 && (j == 0 || j == last) || i == last && j == 0; !isFinder {
				c.drawRings(x, y, 2)
			}
		}
	}
	c.drawFormat(0) // reserves the modules
	c.drawVersion()
}

// drawRings draws a finder pattern (radius 4, with its light edge) or an alignment pattern (radius
// 2).
func (c *qrCode) drawRings(centerX, centerY, radius int) {
	for y := centerY - radius; y <= centerY+radius; y++ {
		for x := centerX - radius; x <= centerX+radius; x++ {
			if x < 0 || y < 0 || x >= c.size || y >= c.size {
				continue
			}
			distance := larger(absolute(x-centerX), absolute(y-centerY))
			isLight := distance == 4 || radius == 4 && distance == 2 || radius == 2 && distance == 1
			c.set(x, y, !isLight)
		}
	}
}

// alignmentLines returns the coordinates of the alignment patterns, evenly spaced from the far
// side.
func (c *qrCode) alignmentLines() []int {
	if c.version == 1 {
		return nil
	}
	count := c.version/7 + 2
	step := (c.version*4 + count*2 + 1) / (count*2 - 2) * 2
	if c.version == 32 { // the standard's own exception
		step = 26
	}
	lines := make([]int, count)
	lines[0] = 6
	for i, at := count-1, c.size-7; i > 0; i, at = i-1, at-step {
		lines[i] = at
	}
	return lines
}

// drawFormat draws the level (M is 0) and the mask, twice, with their own error correction.
func (c *qrCode) drawFormat(mask int) {
	remainder := mask
	for i := 0; i < 10; i++ {
		remainder = remainder<<1 ^ remainder>>9*0x537
	}
	bits := (mask<<10 | remainder) ^ 0x5412
	isDark := func(i int) bool { return bits>>i&1 == 1 }
	for i := 0; i <= 5; i++ {
		c.set(8, i, isDark(i))
	}
	c.set(8, 7, isDark(6))
	c.set(8, 8, isDark(7))
	c.set(7, 8, isDark(8))
	for i := 9; i < 15; i++ {
		c.set(14-i, 8, isDark(i))
	}
	for i := 0; i < 8; i++ {
		c.set(c.size-1-i, 8, isDark(i))
	}
	for i := 8; i < 15; i++ {
		c.set(8, c.size-15+i, isDark(i))
	}
	c.set(8, c.size-8, true)
}

// drawVersion draws the version, twice, from version 7.
func (c *qrCode) drawVersion() {
	if c.version < 7 {
		return
	}
	remainder := c.version
	for i := 0; i < 12; i++ {
		remainder = remainder<<1 ^ remainder>>11*0x1f25
	}
	bits := c.version<<12 | remainder
	for i := 0; i < 18; i++ {
		a, b := c.size-11+i%3, i/3
		c.set(a, b, bits>>i&1 == 1)
		c.set(b, a, bits>>i&1 == 1)
	}
}

// MARK: Data

// drawData fills pairs of columns from the right, upwards and downwards in turn.
func (c *qrCode) drawData(codewords []byte) {
	at := 0
	for right := c.size - 1; right >= 1; right -= 2 {
		if right == 6 { // the column of a timing pattern
			right = 5
		}
		for step := 0; step < c.size; step++ {
			y := step
			if (right+1)&2 == 0 {
				y = c.size - 1 - step
			}
			for _, x := range []int{right, right - 1} {
				if !c.pattern[y][x] && at < 8*len(codewords) {
					c.dark[y][x] = codewords[at/8]>>(7-at%8)&1 == 1
					at++
				}
			}
		}
	}
}

var qrMasks = [8]func(x, y int) bool{
	func(x, y int) bool { return (x+y)%2 == 0 },
	func(_, y int) bool { return y%2 == 0 },
	func(x, _ int) bool { return x%3 == 0 },
	func(x, y int) bool { return (x+y)%3 == 0 },
	func(x, y int) bool { return (x/3+y/2)%2 == 0 },
	func(x, y int) bool { return x*y%2+x*y%3 == 0 },
	func(x, y int) bool { return (x*y%2+x*y%3)%2 == 0 },
	func(x, y int) bool { return ((x+y)%2+x*y%3)%2 == 0 },
}

func (c *qrCode) applyMask(mask int) {
	for y := range c.dark {
		for x := range c.dark[y] {
			if !c.pattern[y][x] && qrMasks[mask](x, y) {
				c.dark[y][x] = !c.dark[y][x]
			}
		}
	}
}

// penalty counts what makes a code hard to read: long runs, squares, likenesses of finder patterns,
// and a share of dark modules far from a half.
func (c *qrCode) penalty() int {
	total, dark := 0, 0
	for i := 0; i < c.size; i++ {
		total += c.linePenalty(func(j int) bool { return c.dark[i][j] })
		total += c.linePenalty(func(j int) bool { return c.dark[j][i] })
		for j := 0; j < c.size; j++ {
			if c.dark[i][j] {
				dark++
			}
			if i > 0 && j > 0 && c.dark[i][j] == c.dark[i-1][j] && c.dark[i][j] == c.dark[i][j-1] &&
				c.dark[i][j] == c.dark[i-1][j-1] {
				total += 3
			}
		}
	}
	return total + 10*(absolute(20*dark-10*c.size*c.size)/(c.size*c.size))
}

func (c *qrCode) linePenalty(isDark func(int) bool) int {
	total, run, window := 0, 0, 0
	for i := 0; i < c.size; i++ {
		run++
		if i > 0 && isDark(i) != isDark(i-1) {
			run = 1
		}
		if run == 5 {
			total += 3
		} else if run > 5 {
			total++
		}
		window = window << 1 & 0x7ff
		if isDark(i) {
			window |= 1
		}
		// A finder pattern with a light edge on one side.
		if i >= 10 && (window == 0x5d0 || window == 0x05d) {
			total += 40
		}
	}
	return total
}

func absolute(value int) int {
	if value < 0 {
		return -value
	}
	return value
}

func larger(one, other int) int {
	if one > other {
		return one
	}
	return other
}
