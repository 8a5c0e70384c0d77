import Metrics
import Storage

/// The metrics of the store. The label `host` has the names from the settings.
enum StoreMetrics {
    static func show(_ store: Store, in registry: Registry) {
        registry.counter(
            "twoefay_store_conflicts_total",
            "Transactions that were run again because another relay, or another request, wrote the same rows."
        ) { store.conflicts }
        registry.gauges(
            "twoefay_store_connections", "The relay's connections to each host of the store.", by: "host", store.hosts
        ) { Int64(store.connections(to: $0)) }
    }
}
