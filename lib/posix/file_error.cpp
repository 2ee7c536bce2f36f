#include "posix/file_error.hpp"

#include "core/escape_text.hpp"

namespace coaccel::detail {
namespace {

error_code failed(const char* verb, const std::string& path, const std::string& why)
{
    return make_error_with_message(errc::file_failed,
                                   std::string("cannot ") + verb + " " + escape_text(path) + ": " + why);
}

} // namespace

error_code file_error(const char* verb, const std::string& path, int number)
{
    return failed(verb, path, error_code(number, boost::system::system_category()).message());
}

error_code not_a_file(const char* verb, const std::string& path)
{
    return failed(verb, path, "it is not a regular file");
}

error_code shortened_file(const std::string& path, std::uint64_t has, std::uint64_t needs)
{
    return failed("read", path,
                  "it has " + std::to_string(has) + " bytes, but " + std::to_string(needs) +
                      " are needed: another program has shortened it");
}

} // namespace coaccel::detail
