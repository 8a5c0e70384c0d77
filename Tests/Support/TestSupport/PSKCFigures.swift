/// The examples of RFC 6030, named after their figures.
public enum PSKCFigures {
    /// A key without further data.
    public static let figure2 = """
        <?xml version="1.0" encoding="UTF-8"?>
        <KeyContainer Version="1.0"
            Id="exampleID1"
            xmlns="urn:ietf:params:xml:ns:keyprov:pskc">
            <KeyPackage>
                <Key Id="12345678"
                    Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Issuer-A</Issuer>
                    <Data>
                        <Secret>
                            <PlainValue>MTIzNA==
                            </PlainValue>
                        </Secret>
                    </Data>
                </Key>
            </KeyPackage>
        </KeyContainer>
        """

    /// A key with its device, owner and code parameters.
    public static let figure3 = """
        <?xml version="1.0" encoding="UTF-8"?>
        <KeyContainer Version="1.0"
            Id="exampleID1"
            xmlns="urn:ietf:params:xml:ns:keyprov:pskc">
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>Manufacturer</Manufacturer>
                    <SerialNo>987654321</SerialNo>
                    <UserId>DC=example-bank,DC=net</UserId>
                </DeviceInfo>
                <CryptoModuleInfo>
                    <Id>CM_ID_001</Id>
                </CryptoModuleInfo>
                <Key Id="12345678"
                    Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="8" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <Data>
                        <Secret>
                            <PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=
                            </PlainValue>
                        </Secret>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                    <UserId>UID=jsmith,DC=example-bank,DC=net</UserId>
                </Key>
            </KeyPackage>
        </KeyContainer>
        """

    /// A key whose secret is derived from a key of the manufacturer.
    public static let figure4 = """
        <?xml version="1.0" encoding="UTF-8"?>
        <KeyContainer Version="1.0"
            Id="exampleID1"
            xmlns="urn:ietf:params:xml:ns:keyprov:pskc">
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>Manufacturer</Manufacturer>
                    <SerialNo>987654321</SerialNo>
                </DeviceInfo>
                <CryptoModuleInfo>
                    <Id>CM_ID_001</Id>
                </CryptoModuleInfo>
                <Key Id="12345678"
                    Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="8" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <KeyProfileId>keyProfile1</KeyProfileId>
                    <KeyReference>MasterKeyLabel
                    </KeyReference>
                    <Data>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                    <Policy>
                        <KeyUsage>OTP</KeyUsage>
                    </Policy>
                </Key>
            </KeyPackage>
        </KeyContainer>
        """

    /// A key with a policy, and with the PIN that the token requires.
    public static let figure5 = """
        <?xml version="1.0" encoding="UTF-8"?>
        <KeyContainer Version="1.0"
            Id="exampleID1"
            xmlns="urn:ietf:params:xml:ns:keyprov:pskc">
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>Manufacturer</Manufacturer>
                    <SerialNo>987654321</SerialNo>
                </DeviceInfo>
                <CryptoModuleInfo>
                    <Id>CM_ID_001</Id>
                </CryptoModuleInfo>
                <Key Id="12345678"
                    Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="8" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <Data>
                        <Secret>
                            <PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=
                            </PlainValue>
                        </Secret>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                    <Policy>
                        <PINPolicy MinLength="4" MaxLength="4"
                            PINKeyId="123456781" PINEncoding="DECIMAL"
                            PINUsageMode="Local"/>
                        <KeyUsage>OTP</KeyUsage>
                    </Policy>
                </Key>
            </KeyPackage>
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>Manufacturer</Manufacturer>
                    <SerialNo>987654321</SerialNo>
                </DeviceInfo>
                <CryptoModuleInfo>
                    <Id>CM_ID_001</Id>
                </CryptoModuleInfo>
                <Key Id="123456781"
                    Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:pin">
                    <Issuer>Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="4" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <Data>
                        <Secret>
                            <PlainValue>MTIzNA==</PlainValue>
                        </Secret>
                    </Data>
                </Key>
            </KeyPackage>
        </KeyContainer>
        """
}
