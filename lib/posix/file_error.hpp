#ifndef COACCEL_POSIX_FILE_ERROR_HPP
#define COACCEL_POSIX_FILE_ERROR_HPP

#include <coaccel/core/error.hpp>

#include <cstdint>
#include <string>

namespace coaccel::detail {

/// errc::file_failed: "cannot VERB PATH: TEXT OF ERRNO".
COACCEL_DECL error_code file_error(const char* verb, const std::string& path, int number);

/// errc::file_failed: "cannot VERB PATH: it is not a regular file".
COACCEL_DECL error_code not_a_file(const char* verb, const std::string& path);

/// errc::file_failed: "cannot read PATH: it has HAS bytes, but NEEDS are needed: another program has shortened it".
COACCEL_DECL error_code shortened_file(const std::string& path, std::uint64_t has, std::uint64_t needs);

} // namespace coaccel::detail

#endif
