extension QRCode {
    /// An SVG image that scales to any size, black on white on every page.
    public func svg() -> String {
        let side = width + 2 * Self.quiet
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(side) \(side)\" "
            + "shape-rendering=\"crispEdges\"><path fill=\"#fff\" d=\"M0 0h\(side)v\(side)H0z\"/>"
            + "<path stroke=\"#000\" d=\"\(strokes())\"/></svg>"
    }

    /// The path of the dark modules, one stroke per run in a row. It is half as long as one
    /// rectangle per module.
    private func strokes() -> String {
        var path = ""
        for y in 0..<width {
            var end: Int?
            var x = 0
            while x < width {
                guard isDark(x: x, y: y) else {
                    x += 1
                    continue
                }
                let start = x
                while isDark(x: x, y: y) { x += 1 }
                if let end {
                    path += "m\(start - end) 0"
                } else {
                    path += "M\(start + Self.quiet) \(y + Self.quiet).5"
                }
                path += "h\(x - start)"
                end = x
            }
        }
        return path
    }

    /// The code as text, with two rows of modules per line, in half blocks.
    ///
    /// - Parameter colored: draws black on white with escape sequences, which is correct on every
    ///   terminal. If it is false, only light modules are drawn, which is correct only on a dark
    ///   background.
    public func terminal(colored: Bool = true) -> String {
        let range = -Self.quiet..<width + Self.quiet
        var text = ""
        for y in stride(from: range.lowerBound, to: range.upperBound, by: 2) {
            if colored { text += "\u{1b}[38;5;16;48;5;231m" }
            for x in range {
                // The height is odd, so the half line below the last row must look like the
                // background.
                let below = y + 1 < range.upperBound ? isDark(x: x, y: y + 1) : !colored
                switch (isDark(x: x, y: y) == colored, below == colored) {
                case (true, true): text += "█"
                case (true, false): text += "▀"
                case (false, true): text += "▄"
                case (false, false): text += " "
                }
            }
            text += colored ? "\u{1b}[0m\n" : "\n"
        }
        return text
    }
}
