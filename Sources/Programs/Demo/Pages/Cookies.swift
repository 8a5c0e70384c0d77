import HTTP

extension Request {
    /// Returns the value of a cookie; nil if the name occurs twice, since one of the two may come
    /// from another site.
    func cookie(_ name: String) -> String? {
        let pairs = fields.values("cookie").flatMap { $0.split(separator: ";").map { String($0.drop { $0 == " " }) } }
        let values = pairs.filter { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
        return values.count == 1 ? values[0] : nil
    }
}

extension Fields.Field {
    /// Makes a session cookie for this host only. Scripts cannot read it, and requests that another
    /// site starts do not carry it.
    ///
    /// It has no `Secure` attribute, because the pages of this machine have no TLS. Cookies do not
    /// depend on the port, so the name contains one.
    static func cookie(_ name: String, _ value: String) -> Fields.Field {
        .init("set-cookie", "\(name)=\(value); Path=/; HttpOnly; SameSite=Strict")
    }

    /// Makes a cookie that stays when the browser is closed.
    static func lasting(_ name: String, _ value: String, _ life: Duration) -> Fields.Field {
        let age = "Max-Age=\(life.components.seconds)"
        return .init("set-cookie", "\(name)=\(value); Path=/; HttpOnly; SameSite=Strict; \(age)")
    }

    static func forgettingCookie(_ name: String) -> Fields.Field {
        .init("set-cookie", "\(name)=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
    }
}
