/// The examples of RFC 6030 with encrypted containers, a signed container, and a container with
/// several keys.
extension PSKCFigures {
    /// A container encrypted with the pre-shared key 12345678901234567890123456789012
    /// (hexadecimal); its MACs use the key 1122334455667788990011223344556677889900.
    public static let figure6 = """
        <?xml version="1.0" encoding="UTF-8"?>
        <KeyContainer Version="1.0"
            xmlns="urn:ietf:params:xml:ns:keyprov:pskc"
            xmlns:ds="http://www.w3.org/2000/09/xmldsig#"
            xmlns:xenc="http://www.w3.org/2001/04/xmlenc#">
            <EncryptionKey>
                <ds:KeyName>Pre-shared-key</ds:KeyName>
            </EncryptionKey>
            <MACMethod Algorithm="http://www.w3.org/2000/09/xmldsig#hmac-sha1">
                <MACKey>
                    <xenc:EncryptionMethod
                    Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
                    <xenc:CipherData>
                        <xenc:CipherValue>
            ESIzRFVmd4iZABEiM0RVZgKn6WjLaTC1sbeBMSvIhRejN9vJa2BOlSaMrR7I5wSX
                        </xenc:CipherValue>
                    </xenc:CipherData>
                </MACKey>
            </MACMethod>
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
                            <EncryptedValue>
                                <xenc:EncryptionMethod
                                Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
                                <xenc:CipherData>
                                    <xenc:CipherValue>
            AAECAwQFBgcICQoLDA0OD+cIHItlB3Wra1DUpxVvOx2lef1VmNPCMl8jwZqIUqGv
                                    </xenc:CipherValue>
                                </xenc:CipherData>
                            </EncryptedValue>
                            <ValueMAC>Su+NvtQfmvfJzF6bmQiJqoLRExc=
                            </ValueMAC>
                        </Secret>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                </Key>
            </KeyPackage>
        </KeyContainer>
        """

    /// A container encrypted with the password `qwerty`; the derived key is
    /// 651e63cd57008476af1ff6422cd02e41.
    public static let figure7 = """
        <?xml version="1.0" encoding="UTF-8"?>
        <pskc:KeyContainer
          xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc"
          xmlns:xenc11="http://www.w3.org/2009/xmlenc11#"
          xmlns:pkcs5="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#"
          xmlns:xenc="http://www.w3.org/2001/04/xmlenc#" Version="1.0">
            <pskc:EncryptionKey>
                <xenc11:DerivedKey>
                    <xenc11:KeyDerivationMethod
                      Algorithm="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#pbkdf2">
                        <pkcs5:PBKDF2-params>
                            <Salt>
                                <Specified>Ej7/PEpyEpw=</Specified>
                            </Salt>
                            <IterationCount>1000</IterationCount>
                            <KeyLength>16</KeyLength>
                            <PRF/>
                        </pkcs5:PBKDF2-params>
                    </xenc11:KeyDerivationMethod>
                    <xenc:ReferenceList>
                        <xenc:DataReference URI="#ED"/>
                    </xenc:ReferenceList>
                    <xenc11:MasterKeyName>My Password 1</xenc11:MasterKeyName>
                </xenc11:DerivedKey>
            </pskc:EncryptionKey>
            <pskc:MACMethod
                Algorithm="http://www.w3.org/2000/09/xmldsig#hmac-sha1">
                <pskc:MACKey>
                    <xenc:EncryptionMethod
                    Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
                    <xenc:CipherData>
                        <xenc:CipherValue>
        2GTTnLwM3I4e5IO5FkufoOEiOhNj91fhKRQBtBJYluUDsPOLTfUvoU2dStyOwYZx
                        </xenc:CipherValue>
                    </xenc:CipherData>
                </pskc:MACKey>
            </pskc:MACMethod>
            <pskc:KeyPackage>
                <pskc:DeviceInfo>
                    <pskc:Manufacturer>TokenVendorAcme</pskc:Manufacturer>
                    <pskc:SerialNo>987654321</pskc:SerialNo>
                </pskc:DeviceInfo>
                <pskc:CryptoModuleInfo>
                    <pskc:Id>CM_ID_001</pskc:Id>
                </pskc:CryptoModuleInfo>
                <pskc:Key Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp" Id="123456">
                    <pskc:Issuer>Example-Issuer</pskc:Issuer>
                    <pskc:AlgorithmParameters>
                        <pskc:ResponseFormat Length="8" Encoding="DECIMAL"/>
                    </pskc:AlgorithmParameters>
                    <pskc:Data>
                        <pskc:Secret>
                        <pskc:EncryptedValue Id="ED">
                            <xenc:EncryptionMethod
                                Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
                                <xenc:CipherData>
                                    <xenc:CipherValue>
              oTvo+S22nsmS2Z/RtcoF8Hfh+jzMe0RkiafpoDpnoZTjPYZu6V+A4aEn032yCr4f
                                </xenc:CipherValue>
                            </xenc:CipherData>
                            </pskc:EncryptedValue>
                            <pskc:ValueMAC>LP6xMvjtypbfT9PdkJhBZ+D6O4w=
                            </pskc:ValueMAC>
                        </pskc:Secret>
                    </pskc:Data>
                </pskc:Key>
            </pskc:KeyPackage>
        </pskc:KeyContainer>
        """

    /// A container encrypted for the owner of a certificate.
    public static let figure8 = """
        <?xml version="1.0" encoding="UTF-8" ?>
        <KeyContainer
            xmlns:ds="http://www.w3.org/2000/09/xmldsig#"
            xmlns="urn:ietf:params:xml:ns:keyprov:pskc"
            xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"
            id="KC0001"
            Version="1.0">
            <EncryptionKey>
                <ds:X509Data>
        <ds:X509Certificate>MIIB5zCCAVCgAwIBAgIESZp/vDANBgkqhkiG9w0BAQUFADA4M
        Q0wCwYDVQQKEwRJRVRGMRMwEQYDVQQLEwpLZXlQcm92IFdHMRIwEAYDVQQDEwlQU0tDIF
        Rlc3QwHhcNMDkwMjE3MDkxMzMyWhcNMTEwMjE3MDkxMzMyWjA4MQ0wCwYDVQQKEwRJRVR
        GMRMwEQYDVQQLEwpLZXlQcm92IFdHMRIwEAYDVQQDEwlQU0tDIFRlc3QwgZ8wDQYJKoZI
        hvcNAQEBBQADgY0AMIGJAoGBALCWLDa2ItYJ6su80hd1gL4cggQYdyyKK17btt/aS6Q/e
        DsKjsPyFIODsxeKVV/uA3wLT4jQJM5euKJXkDajzGGOy92+ypfzTX4zDJMkh61SZwlHNJ
        xBKilAM5aW7C+BQ0RvCxvdYtzx2LTdB+X/KMEBA7uIYxLfXH2Mnub3WIh1AgMBAAEwDQY
        JKoZIhvcNAQEFBQADgYEAe875m84sYUJ8qPeZ+NG7REgTvlHTmoCdoByU0LBBLotUKuqf
        rnRuXJRMeZXaaEGmzY1kLonVjQGzjAkU4dJ+RPmiDlYuHLZS41Pg6VMwY+03lhk6I5A/w
        4rnqdkmwZX/NgXg06alnc2pBsXWhL4O7nk0S2ZrLMsQZ6HcsXgdmHo=
        </ds:X509Certificate>
                </ds:X509Data>
            </EncryptionKey>
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>TokenVendorAcme</Manufacturer>
                    <SerialNo>987654321</SerialNo>
                </DeviceInfo>
                <Key
                    Id="MBK000000001"
                    Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Example-Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="6" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <Data>
                        <Secret>
                            <EncryptedValue>
                                <xenc:EncryptionMethod
                     Algorithm="http://www.w3.org/2001/04/xmlenc#rsa_1_5"/>
                                <xenc:CipherData>
        <xenc:CipherValue>hJ+fvpoMPMO9BYpK2rdyQYGIxiATYHTHC7e/sPLKYo5/r1v+4
        xTYG3gJolCWuVMydJ7Ta0GaiBPHcWa8ctCVYmHKfSz5fdeV5nqbZApe6dofTqhRwZK6
        Yx4ufevi91cjN2vBpSxYafvN3c3+xIgk0EnTV4iVPRCR0rBwyfFrPc4=
        </xenc:CipherValue>
                                </xenc:CipherData>
                            </EncryptedValue>
                        </Secret>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                </Key>
            </KeyPackage>
        </KeyContainer>
        """

    /// A signed container.
    public static let figure9 = """
        <?xml version="1.0" encoding="UTF-8"?>
        <KeyContainer
            xmlns="urn:ietf:params:xml:ns:keyprov:pskc"
            xmlns:ds="http://www.w3.org/2000/09/xmldsig#"
            xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"
            Version="1.0">
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>TokenVendorAcme</Manufacturer>
                    <SerialNo>0755225266</SerialNo>
                </DeviceInfo>
                <Key Id="123"
                Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Example-Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="6" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <Data>
                        <Secret>
                            <PlainValue>
                                MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=
                            </PlainValue>
                        </Secret>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                </Key>
            </KeyPackage>
            <ds:Signature>
                <ds:SignedInfo>
                    <ds:CanonicalizationMethod
                     Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>
                    <ds:SignatureMethod
                     Algorithm="http://www.w3.org/2000/09/xmldsig#rsa-sha1"/>
                    <ds:Reference URI="#Device">
                        <ds:DigestMethod
                     Algorithm="http://www.w3.org/2000/09/xmldsig#sha1"/>
                        <ds:DigestValue>
                            j6lwx3rvEPO0vKtMup4NbeVu8nk=
                        </ds:DigestValue>
                    </ds:Reference>
                </ds:SignedInfo>
                <ds:SignatureValue>
                    j6lwx3rvEPO0vKtMup4NbeVu8nk=
                </ds:SignatureValue>
                <ds:KeyInfo>
                    <ds:X509Data>
                        <ds:X509IssuerSerial>
                            <ds:X509IssuerName>
                                CN=Example.com,C=US
                            </ds:X509IssuerName>
                            <ds:X509SerialNumber>
                                12345678
                            </ds:X509SerialNumber>
                        </ds:X509IssuerSerial>
                    </ds:X509Data>
                </ds:KeyInfo>
            </ds:Signature>
        </KeyContainer>
        """

    /// A container with four keys of three tokens.
    public static let figure10 = """
        <?xml version="1.0" encoding="UTF-8"?>
        <KeyContainer Version="1.0"
            xmlns="urn:ietf:params:xml:ns:keyprov:pskc">
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>TokenVendorAcme</Manufacturer>
                    <SerialNo>654321</SerialNo>
                </DeviceInfo>
                <Key Id="1"
                Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="8" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <Data>
                        <Secret>
                            <PlainValue>
                                MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=
                            </PlainValue>
                        </Secret>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                    <Policy>
                        <StartDate>2006-05-01T00:00:00Z</StartDate>
                        <ExpiryDate>2006-05-31T00:00:00Z</ExpiryDate>
                    </Policy>
                </Key>
            </KeyPackage>
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>TokenVendorAcme</Manufacturer>
                    <SerialNo>123456</SerialNo>
                </DeviceInfo>
                <Key Id="2"
                Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="8" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <Data>
                        <Secret>
                            <PlainValue>
                                MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=
                            </PlainValue>
                        </Secret>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                    <Policy>
                        <StartDate>2006-05-01T00:00:00Z</StartDate>
                        <ExpiryDate>2006-05-31T00:00:00Z</ExpiryDate>
                    </Policy>
                </Key>
            </KeyPackage>
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>TokenVendorAcme</Manufacturer>
                    <SerialNo>9999999</SerialNo>
                </DeviceInfo>
                <Key Id="3"
                Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="8" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <Data>
                        <Secret>
                            <PlainValue>
                                MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=
                            </PlainValue>
                        </Secret>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                    <Policy>
                        <StartDate>2006-03-01T00:00:00Z</StartDate>
                        <ExpiryDate>2006-03-31T00:00:00Z</ExpiryDate>
                    </Policy>
                </Key>
            </KeyPackage>
            <KeyPackage>
                <DeviceInfo>
                    <Manufacturer>TokenVendorAcme</Manufacturer>
                    <SerialNo>9999999</SerialNo>
                </DeviceInfo>
                <Key Id="4"
                Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
                    <Issuer>Issuer</Issuer>
                    <AlgorithmParameters>
                        <ResponseFormat Length="8" Encoding="DECIMAL"/>
                    </AlgorithmParameters>
                    <Data>
                        <Secret>
                            <PlainValue>
                                MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=
                            </PlainValue>
                        </Secret>
                        <Counter>
                            <PlainValue>0</PlainValue>
                        </Counter>
                    </Data>
                    <Policy>
                        <StartDate>2006-04-01T00:00:00Z</StartDate>
                        <ExpiryDate>2006-04-30T00:00:00Z</ExpiryDate>
                    </Policy>
                </Key>
            </KeyPackage>
        </KeyContainer>
        """
}
