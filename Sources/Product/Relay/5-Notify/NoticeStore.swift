import Domain
import World

/// The store port of notices (verb Notify).
public protocol NoticeStore: Sendable {
    /// Stores a notice for a user. Returns false if the user has too many that no phone has
    /// fetched, or too many in all.
    func leave(_ notice: NewNotice, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Deletes a notice. Returns false if the user has no such notice of this author.
    func withdraw(_ withdrawal: NoticeWithdrawal, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Returns the notices of a user, the newest first.
    func notices(of user: UserID) async throws(StoreFailure) -> [Notice]
    /// Returns the notices that no phone of the user has fetched, or the archive of the others.
    func notices(of user: UserID, inArchive: Bool) async throws(StoreFailure) -> NoticeList
    /// Returns a notice, and moves it to the archive; nil if the user has no such notice.
    func fetch(_ fetch: NoticeFetch, as operation: Operation) async throws(StoreFailure) -> FetchedNotice?
}

/// A notice to be stored.
public struct NewNotice: Sendable {
    public let id: NoticeID
    public let user: UserID
    public let author: NoticeAuthor
    public let title: String
    public let text: String
    public let at: Timestamp

    public init(id: NoticeID, user: UserID, author: NoticeAuthor, title: String, text: String, at now: Timestamp) {
        self.id = id
        self.user = user
        self.author = author
        self.title = title
        self.text = text
        at = now
    }
}

/// The deletion of a notice. A website deletes only its own notices.
public struct NoticeWithdrawal: Sendable {
    public let id: NoticeID
    public let user: UserID
    public let author: NoticeAuthor
    public let at: Timestamp

    public init(_ id: NoticeID, of user: UserID, by author: NoticeAuthor, at now: Timestamp) {
        self.id = id
        self.user = user
        self.author = author
        at = now
    }
}

/// A stored notice.
public struct Notice: Sendable, Equatable {
    public let id: NoticeID
    public let author: NoticeAuthor
    public let title: String
    public let text: String
    public let createdAt: Timestamp
    /// The time when a phone fetched it first; nil if none has.
    public let readAt: Timestamp?

    public init(
        id: NoticeID, author: NoticeAuthor, title: String, text: String, createdAt: Timestamp, readAt: Timestamp?
    ) {
        self.id = id
        self.author = author
        self.title = title
        self.text = text
        self.createdAt = createdAt
        self.readAt = readAt
    }
}

/// The notices that a phone may fetch, with the numbers of all of them.
public struct NoticeList: Sendable, Equatable {
    public let notices: [Notice]
    public let unread: Int
    public let archived: Int

    public init(notices: [Notice], unread: Int, archived: Int) {
        self.notices = notices
        self.unread = unread
        self.archived = archived
    }
}

/// A phone's request for a notice.
public struct NoticeFetch: Sendable {
    public let id: NoticeID
    public let user: UserID
    public let device: DeviceID
    public let at: Timestamp

    public init(id: NoticeID, user: UserID, device: DeviceID, at now: Timestamp) {
        self.id = id
        self.user = user
        self.device = device
        at = now
    }
}

/// A notice as a phone has fetched it.
public struct FetchedNotice: Sendable, Equatable {
    public let notice: Notice
    /// The token of the user.
    public let token: UserToken
    /// The number of notices that no phone has fetched yet.
    public let unread: Int
    /// Whether this request was the first for it.
    public let isFirst: Bool

    public init(notice: Notice, token: UserToken, unread: Int, isFirst: Bool) {
        self.notice = notice
        self.token = token
        self.unread = unread
        self.isFirst = isFirst
    }
}
