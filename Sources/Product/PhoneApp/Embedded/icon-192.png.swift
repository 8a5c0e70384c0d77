// Written by dev/embed-pages from Assets/icon-192.png. Do not edit.
extension AppFile {
    static let icon192PNG = AppFile(
        "icon-192.png", type: "image/png",
        base64: """
            iVBORw0KGgoAAAANSUhEUgAAAMAAAADABAMAAACg8nE0AAAAMFBMVEULYm4bbHgsd4E8gYtMjJVclp5toah9q7KNtrudwMWu\
            y8++1djO4OLe6uzv9fX///9w2Z+WAAACFklEQVR42u2aMUoDQRSGx5ioEdEcIMJWliLWElJbLbYKBsFaDyCoJ9AbmAMIVtZR\
            7LQQG9sVcoBYmAQjyZrsrNlNspkt5v0Q5P+qsAPzMcmb2XkvTylCCCGEEEIIIeSfsXHb8MfoPR/JzX/gJ3IvNf+OP4UnmfkX\
            /amcighupgu+JebP+wauBQTnJkHbfv5538iWtWDFLHiwFhyaBU1rwatZ8GM7f8ZPwbEULKQJKpaC5TRBFRtE9mG0mib4sBSs\
            pQk+KaCAAgoooIACCmZa0Dk+gwp6ZaVOkIL6MPsECdzBmIcTtKP8FiPQ2esVTBDmTXcwwWMwNNdACbpOrASAENT1EG4fBDGq\
            srCd3NIjmzDBhf6JPZQgjNGi7Gn6vr07GqN6E4gJOoVhVaRbCJ4vyb4P3vqfcgkxKiaoRIWdcjxGxQRBXSsXi9GSsMAZ1qZ0\
            jGY8YYH+XvpL6IzGqJig+ldeC2O0Ji0IK3O5MEbz8tcWfb6pvclSqpBgpLiYRVy83NizEkIQW0IsRiVP02gJRczdNFpCDXT5\
            dZPL/XKCZnK5X/CN5ioVndoIQXMyRoXfyYMlZBpAwWAJ69AU6lJlPWyO9uIxjaWAAgoooIACCmZUAP/LHd40AG97gDduwFtP\
            xjIy+eaZtPafL2sBvIEJ3oJlbiJr2c+Pb4ODN/LhWxHhzZRK7YPbQfENrYQQQgghhBBCyGzwC08hA0UAiHOHAAAAAElFTkSu\
            QmCC
            """)
}
