#include "plan/file/plan_file.hpp"

#include "posix/mapped_file.hpp"
#include "posix/replaced_file.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <array>

namespace coaccel {

result<void> plan_description::save(const std::string& path) const
{
    using namespace detail;
    if (!data_)
        return op_error(errc::invalid_argument, "plan_description::save", {"the plan is empty"});
    BOOST_OUTCOME_TRY(const auto parts, write_plan(*data_));
    BOOST_OUTCOME_TRY(auto file, replaced_file::create(path));
    if (auto ec = file.write(parts.head))
        return ec;
    static constexpr std::array<std::byte, content_alignment> zeros{};
    std::uint64_t end = parts.head.size();
    for (const auto content : parts.contents) {
        if (auto ec = file.write({zeros.data(), static_cast<std::size_t>(aligned_content(end) - end)}))
            return ec;
        if (auto ec = file.write(content))
            return ec;
        end = content.size();
    }
    if (auto ec = file.commit())
        return ec;
    return success();
}

result<plan_description> plan_description::load(const std::string& path, content_check check)
{
    BOOST_OUTCOME_TRY(auto file, detail::mapped_file::open(path));
    const auto bytes = file->bytes();
    return detail::read_plan(bytes, std::move(file), check, path);
}

} // namespace coaccel
