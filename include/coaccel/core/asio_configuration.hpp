#ifndef COACCEL_CORE_ASIO_CONFIGURATION_HPP
#define COACCEL_CORE_ASIO_CONFIGURATION_HPP

// The library and the program both compile Asio's inline functions and share its objects and static variables. Both
// therefore need the same Boost and the same Asio configuration: Asio's macros decide the layout and the behaviour of
// its classes. A program with another configuration would corrupt its memory. This header makes it fail to link
// instead: each file that includes coaccel refers to a symbol whose name encodes the configuration of that file, and
// the library defines only the symbol of its own configuration.
//
// The name lists the deviations from Asio's defaults on Linux. Macros that change neither layout nor shared behaviour,
// such as BOOST_ASIO_NO_EXTENSIONS, are left out.

#include <boost/asio/detail/concurrency_hint.hpp>
#include <boost/asio/detail/config.hpp>
#include <boost/version.hpp>

#define COACCEL_DETAIL_JOIN_TOKENS(a, b) a##b
#define COACCEL_DETAIL_JOIN(a, b) COACCEL_DETAIL_JOIN_TOKENS(a, b)

// Where Asio's functions are defined. With visibility disabled, a shared library may have its own copies of Asio's
// static variables.
#if defined(BOOST_ASIO_DYN_LINK)
#define COACCEL_DETAIL_ASIO_LINKAGE ::dyn_link
#elif defined(BOOST_ASIO_SEPARATE_COMPILATION)
#define COACCEL_DETAIL_ASIO_LINKAGE ::separate_compilation
#elif defined(BOOST_ASIO_DISABLE_VISIBILITY)
#define COACCEL_DETAIL_ASIO_LINKAGE ::disable_visibility
#else
#define COACCEL_DETAIL_ASIO_LINKAGE
#endif

// The types of mutexes and events.
#if defined(BOOST_ASIO_HAS_THREADS)
#define COACCEL_DETAIL_ASIO_THREADS
#else
#define COACCEL_DETAIL_ASIO_THREADS ::disable_threads
#endif

// The base class of every operation.
#if defined(BOOST_ASIO_CUSTOM_HANDLER_TRACKING)
#define COACCEL_DETAIL_ASIO_TRACKING ::custom_handler_tracking
#elif defined(BOOST_ASIO_ENABLE_HANDLER_TRACKING)
#define COACCEL_DETAIL_ASIO_TRACKING ::enable_handler_tracking
#else
#define COACCEL_DETAIL_ASIO_TRACKING
#endif

// The reactor, its wake-up mechanism and its timers.
#if defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT)
#define COACCEL_DETAIL_ASIO_REACTOR ::io_uring_as_default
#elif !defined(BOOST_ASIO_HAS_EPOLL)
#define COACCEL_DETAIL_ASIO_REACTOR ::disable_epoll
#elif !defined(BOOST_ASIO_HAS_TIMERFD)
#define COACCEL_DETAIL_ASIO_REACTOR ::disable_timerfd
#else
#define COACCEL_DETAIL_ASIO_REACTOR
#endif
#if defined(BOOST_ASIO_HAS_IO_URING)
#define COACCEL_DETAIL_ASIO_IO_URING ::io_uring
#else
#define COACCEL_DETAIL_ASIO_IO_URING
#endif
#if defined(BOOST_ASIO_HAS_EVENTFD)
#define COACCEL_DETAIL_ASIO_EVENTFD
#else
#define COACCEL_DETAIL_ASIO_EVENTFD ::disable_eventfd
#endif

// Memory of handlers: one side may deallocate memory that the other allocated. With BOOST_ASIO_NO_DEPRECATED,
// asio_handler_allocate is a function of the same name that does nothing.
#if defined(BOOST_ASIO_NO_DEPRECATED)
#define COACCEL_DETAIL_ASIO_DEPRECATED ::no_deprecated
#else
#define COACCEL_DETAIL_ASIO_DEPRECATED
#endif
#if defined(BOOST_ASIO_DISABLE_HANDLER_HOOKS)
#define COACCEL_DETAIL_ASIO_HOOKS ::disable_handler_hooks
#else
#define COACCEL_DETAIL_ASIO_HOOKS
#endif
#if defined(BOOST_ASIO_DISABLE_SMALL_BLOCK_RECYCLING)
#define COACCEL_DETAIL_ASIO_RECYCLING ::disable_small_block_recycling
#elif defined(BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE) && BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE != 2
#define COACCEL_DETAIL_ASIO_RECYCLING                                                                                  \
    ::COACCEL_DETAIL_JOIN(recycling_allocator_cache_size_, BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE)
#else
#define COACCEL_DETAIL_ASIO_RECYCLING
#endif

// The type behind any_io_executor, and the supported executor interfaces.
#if defined(BOOST_ASIO_USE_TS_EXECUTOR_AS_DEFAULT)
#define COACCEL_DETAIL_ASIO_EXECUTORS ::use_ts_executor_as_default
#elif defined(BOOST_ASIO_NO_TS_EXECUTORS)
#define COACCEL_DETAIL_ASIO_EXECUTORS ::no_ts_executors
#else
#define COACCEL_DETAIL_ASIO_EXECUTORS
#endif

// The service of io_context::strand.
#if defined(BOOST_ASIO_STRAND_IMPLEMENTATIONS)
#define COACCEL_DETAIL_ASIO_STRANDS ::COACCEL_DETAIL_JOIN(strand_implementations_, BOOST_ASIO_STRAND_IMPLEMENTATIONS)
#elif defined(BOOST_ASIO_ENABLE_SEQUENTIAL_STRAND_ALLOCATION)
#define COACCEL_DETAIL_ASIO_STRANDS ::enable_sequential_strand_allocation
#else
#define COACCEL_DETAIL_ASIO_STRANDS
#endif

// Whether an io_context uses locks when it is constructed without a concurrency hint or with a hint of 1.
#if (BOOST_ASIO_CONCURRENCY_HINT_DEFAULT) != -1 || (BOOST_ASIO_CONCURRENCY_HINT_1) != 1
#define COACCEL_DETAIL_ASIO_HINTS ::other_concurrency_hints
#else
#define COACCEL_DETAIL_ASIO_HINTS
#endif

// The members of a buffer.
#if defined(BOOST_ASIO_ENABLE_BUFFER_DEBUGGING) ||                                                                     \
    (defined(_GLIBCXX_DEBUG) && !defined(BOOST_ASIO_DISABLE_BUFFER_DEBUGGING))
#define COACCEL_DETAIL_ASIO_BUFFERS ::enable_buffer_debugging
#else
#define COACCEL_DETAIL_ASIO_BUFFERS
#endif

// How services are looked up, and whether threads store exceptions.
#if defined(BOOST_ASIO_NO_TYPEID)
#define COACCEL_DETAIL_ASIO_LANGUAGE ::no_typeid
#elif defined(BOOST_ASIO_NO_EXCEPTIONS)
#define COACCEL_DETAIL_ASIO_LANGUAGE ::no_exceptions
#else
#define COACCEL_DETAIL_ASIO_LANGUAGE
#endif

// clang-format off
#define COACCEL_DETAIL_ASIO_CONFIGURATION                                                                              \
    asio_configuration::COACCEL_DETAIL_JOIN(boost_, BOOST_VERSION)                                                     \
    COACCEL_DETAIL_ASIO_LINKAGE COACCEL_DETAIL_ASIO_THREADS COACCEL_DETAIL_ASIO_TRACKING COACCEL_DETAIL_ASIO_REACTOR    \
    COACCEL_DETAIL_ASIO_IO_URING COACCEL_DETAIL_ASIO_EVENTFD COACCEL_DETAIL_ASIO_DEPRECATED COACCEL_DETAIL_ASIO_HOOKS  \
    COACCEL_DETAIL_ASIO_RECYCLING COACCEL_DETAIL_ASIO_EXECUTORS COACCEL_DETAIL_ASIO_STRANDS COACCEL_DETAIL_ASIO_HINTS  \
    COACCEL_DETAIL_ASIO_BUFFERS COACCEL_DETAIL_ASIO_LANGUAGE
// clang-format on

namespace coaccel::COACCEL_DETAIL_ASIO_CONFIGURATION {

extern __attribute__((visibility("default"))) const char must_match_the_library;

} // namespace coaccel::COACCEL_DETAIL_ASIO_CONFIGURATION

namespace coaccel::detail {
namespace {

// Kept in each object file even with --gc-sections, which would remove the reference before the linker reports it.
#if defined(__has_attribute) && __has_attribute(retain)
__attribute__((used, retain))
#else
__attribute__((used))
#endif
const char* const asio_configuration_in_use = &coaccel::COACCEL_DETAIL_ASIO_CONFIGURATION::must_match_the_library;

} // namespace
} // namespace coaccel::detail

#endif
