// ADDRESS_SANITIZER is defined in builds with the address sanitizer, of gcc and of clang.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#endif
#endif
