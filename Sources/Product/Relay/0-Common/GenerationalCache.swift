/// A dictionary with bounded memory. It has a newer and an older half. When the newer half is full,
/// it becomes the older one, and the entries of the old half are dropped.
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
