import TestSupport
import Testing

/// All that kill or stop the one server that is there for it: one after the other.
@Suite(.serialized, .timeLimit(.minutes(15)), .mayBlock) enum HarmedServerTests {}
