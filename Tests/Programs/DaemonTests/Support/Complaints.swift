import Daemon

/// What is said against settings that hold the least that they must, in three lines, and that: each with its line and
/// column.
func complaints(below text: String) -> [String] {
    let least = "origin: https://a.example\nlisten: 0.0.0.0:8080\nstorage: sqlite:t.db\n"
    do throws(SettingsReader.Problems) {
        _ = try SettingsReader.read(Array((least + text).utf8), file: "t.yaml")
        return []
    } catch {
        return error.all.map(\.description)
    }
}
