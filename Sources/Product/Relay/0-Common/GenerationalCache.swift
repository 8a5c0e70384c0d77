/// A dictionary whose older half goes when the newer is full: its memory is bounded whatever is put into it.
struct GenerationalCache<Key: Hashable, Value> {
    private var newer: [Key: Value] = [:]
    private var older: [Key: Value] = [:]
    private let half: Int

    init(most: Int) { half = max(most / 2, 1) }

    var count: Int { newer.count + older.count }

    subscript(key: Key) -> Value? {
        get { newer[key] ?? older[key] }
        set {
            older[key] = nil
            guard let newValue else {
                newer[key] = nil
                return
            }
            if newer[key] == nil, newer.count >= half {
                older = newer
                newer = [:]
            }
            newer[key] = newValue
        }
    }
}
