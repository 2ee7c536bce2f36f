#ifndef COACCEL_TEST_SUPPORT_SANITIZED_HPP
#define COACCEL_TEST_SUPPORT_SANITIZED_HPP

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COACCEL_TEST_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COACCEL_TEST_SANITIZED true
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define COACCEL_TEST_THREAD_SANITIZED true
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COACCEL_TEST_THREAD_SANITIZED true
#endif
#if __has_feature(undefined_behavior_sanitizer)
#define COACCEL_TEST_CHECKS_OBJECTS true
#endif
#endif
#ifndef COACCEL_TEST_SANITIZED
#define COACCEL_TEST_SANITIZED false
#endif
#ifndef COACCEL_TEST_THREAD_SANITIZED
#define COACCEL_TEST_THREAD_SANITIZED false
#endif
#ifndef COACCEL_TEST_CHECKS_OBJECTS
#define COACCEL_TEST_CHECKS_OBJECTS false
#endif

namespace test {

/// Whether this build uses a sanitizer that is slow and needs shadow memory.
inline constexpr bool sanitized = COACCEL_TEST_SANITIZED;

/// Whether this build uses ThreadSanitizer, which has limitations: it kills a forked child that starts threads, and
/// restarts a set-uid program in an endless loop.
inline constexpr bool thread_sanitized = COACCEL_TEST_THREAD_SANITIZED;

/// Whether UndefinedBehaviorSanitizer checks objects before use, for which it needs file descriptors.
inline constexpr bool checks_objects = COACCEL_TEST_CHECKS_OBJECTS;

} // namespace test

#endif
