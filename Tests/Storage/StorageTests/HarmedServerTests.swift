import TestSupport
import Testing

/// The tests that kill or stop the server reserved for them. They run one after the other.
@Suite(.serialized, .timeLimit(.minutes(15)), .mayBlock) enum HarmedServerTests {}
