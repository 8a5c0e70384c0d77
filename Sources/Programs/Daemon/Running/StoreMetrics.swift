import Metrics
import Storage

/// The metrics of the store. The label `host` has the names from the settings.
enum StoreMetrics {
    static func show(_ store: Store, in registry: Registry) {
        registry.counter(
            "twoefay_store_conflicts_total",
            "Transactions retried because another session wrote the same rows."
        ) { store.conflicts }
        registry.histograms(
            "twoefay_store_seconds", "Time from a request to the store until its answer, by kind.", by: "kind",
            store.times.all)
        registry.gauges(
            "twoefay_store_connections", "Database connections of this relay, by host.", by: "host", store.hosts
        ) { Int64(store.connections(to: $0)) }
    }
}
