#include "plan/file/plan_file.hpp"

#include "plan/content_registry.hpp"
#include "posix/mapped_file.hpp"
#include "posix/replaced_file.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <array>
#include <utility>

namespace coaccel {
namespace {

result<void> write_file(const std::string& path, const detail::plan_file_parts& parts)
{
    BOOST_OUTCOME_TRY(auto file, detail::replaced_file::create(path));
    if (auto ec = file.write(parts.head))
        return ec;
    static constexpr std::array<std::byte, detail::content_alignment> zeros{};
    std::uint64_t end = parts.head.size();
    for (const detail::plan_content& content : parts.contents) {
        if (auto ec = file.write({zeros.data(), static_cast<std::size_t>(detail::aligned_content(end) - end)}))
            return ec;
        // It may be mapped from a file that another program has shortened.
        if (auto ec = detail::check_content(content, 0, content.bytes))
            return ec;
        if (auto ec = file.write({content.data.get(), static_cast<std::size_t>(content.bytes)}))
            return ec;
        end = content.bytes;
    }
    if (auto ec = file.commit())
        return ec;
    return success();
}

result<detail::plan_file_source> open_file(const std::string& path, content_check check)
{
    BOOST_OUTCOME_TRY(auto file, detail::mapped_file::open(path));
    const auto bytes = file->bytes();
    const auto* const mapped = file.get();
    return detail::plan_file_source{
        .bytes = bytes, .owner = std::move(file), .check = check, .name = path, .mapped = mapped};
}

} // namespace

result<void> plan_description::save(const std::string& path) const
{
    if (!data_)
        return detail::op_error(errc::invalid_argument, "plan_description::save", {"the plan is empty"});
    BOOST_OUTCOME_TRY(const auto parts, detail::write_plan(*this));
    return write_file(path, parts);
}

result<plan_description> plan_description::load(const std::string& path, content_check check)
{
    BOOST_OUTCOME_TRY(const auto file, open_file(path, check));
    return detail::read_plan(file);
}

result<void> plan_set_description::save(const std::string& path) const
{
    if (!data_)
        return detail::op_error(errc::invalid_argument, "plan_set_description::save", {"the set is empty"});
    BOOST_OUTCOME_TRY(const auto parts, detail::write_plan_set(*this));
    return write_file(path, parts);
}

result<plan_set_description> plan_set_description::load(const std::string& path, content_check check)
{
    BOOST_OUTCOME_TRY(const auto file, open_file(path, check));
    return detail::read_plan_set(file);
}

} // namespace coaccel
