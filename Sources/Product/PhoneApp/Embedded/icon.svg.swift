// Written by dev/embed-pages from Assets/icon.svg. Do not edit.
extension AppFile {
    static let iconSVG = AppFile(
        "icon.svg", type: "image/svg+xml",
        text: #"""
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
            <rect width="32" height="32" fill="#0b626e"/>
            <rect x="10.5" y="6.5" width="11" height="19" rx="2.8" fill="#fff"/>
            <path d="M13.2 16.2l2 2 3.7-4.3" fill="none" stroke="#0b626e" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round"/>
            </svg>

            """#)
}
