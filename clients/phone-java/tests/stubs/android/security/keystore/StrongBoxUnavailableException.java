package android.security.keystore;

/** A stub, against which the sketch in README.md is compiled. */
public class StrongBoxUnavailableException extends java.security.ProviderException {}
