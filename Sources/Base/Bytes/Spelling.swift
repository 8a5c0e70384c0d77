/// Suggestions for misspelled words.
public enum Spelling {
    /// The nearest of `words`; nil if none is near enough to be a typing error.
    public static func nearest(to word: String, among words: [String]) -> String? {
        let bound = max(1, min(3, word.count / 3))
        let near = words.map { (word: $0, distance: distance(Array(word.lowercased()), Array($0.lowercased()))) }
            .filter { $0.distance <= bound }
        return near.min { $0.distance < $1.distance }?.word
    }

    /// The edit distance: the number of characters to insert, delete, replace or swap with a
    /// neighbour.
    static func distance(_ a: [Character], _ b: [Character]) -> Int {
        var rows = [Array(0...b.count)]
        for i in 0..<a.count {
            var row = [i + 1]
            for j in 0..<b.count {
                let replaced = rows[i][j] + (a[i] == b[j] ? 0 : 1)
                var best = min(row[j] + 1, rows[i][j + 1] + 1, replaced)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, rows[i - 1][j - 1] + 1) }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[a.count][b.count]
    }
}
