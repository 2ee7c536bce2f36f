#ifndef COACCEL_CORE_CONFIG_HPP
#define COACCEL_CORE_CONFIG_HPP

#include <coaccel/core/asio_configuration.hpp>

#include <boost/version.hpp>

/// @file
/// The version of the library.

/// The first number of the version.
#define COACCEL_VERSION_MAJOR 0
/// The second number of the version.
#define COACCEL_VERSION_MINOR 3
/// The third number of the version.
#define COACCEL_VERSION_PATCH 0
/// The version as a text.
#define COACCEL_VERSION_STRING "0.3.0"

static_assert(BOOST_VERSION >= 108100, "coaccel needs Boost 1.81 or later");

// The library is compiled with hidden visibility; this macro exports the symbols that users link against.
#if defined(__GNUC__)
#define COACCEL_DECL __attribute__((visibility("default")))
#else
#define COACCEL_DECL
#endif

namespace boost::asio {}

namespace coaccel {

namespace asio = boost::asio;

} // namespace coaccel

#endif
