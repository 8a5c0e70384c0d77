import Storage

extension StoreOptions {
    /// For every test that is not about a store that is slow: its deadlines run on the machine's
    /// clock, and no machine is too busy to pass.
    public static var patient: StoreOptions {
        var options = StoreOptions()
        options.deadline = .seconds(600)
        return options
    }
}
