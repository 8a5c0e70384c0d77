// Written by dev/embed-pages from Assets/icon.svg. Do not edit.
extension PageFile {
    static let iconSVG = PageFile(
        "icon.svg", type: "image/svg+xml",
        text: #"""
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
            <rect x="7" y="1.5" width="18" height="29" rx="4.5" fill="#0b626e"/>
            <path d="M11.5 16.5l3.3 3.3 6-7" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round"/>
            </svg>

            """#)
}
