package android.security.keystore;

import java.security.spec.AlgorithmParameterSpec;

/** A stub, against which the sketch in README.md is compiled. */
public final class KeyGenParameterSpec implements AlgorithmParameterSpec {
    public static final class Builder {
        public Builder(String name, int purposes) {}

        public Builder setAlgorithmParameterSpec(AlgorithmParameterSpec spec) {
            return this;
        }

        public Builder setDigests(String... digests) {
            return this;
        }

        public Builder setAttestationChallenge(byte[] challenge) {
            return this;
        }

        public Builder setIsStrongBoxBacked(boolean isBacked) {
            return this;
        }

        public KeyGenParameterSpec build() {
            return new KeyGenParameterSpec();
        }
    }
}
