#ifndef COACCEL_PLAN_FILE_SLOT_RECORDS_HPP
#define COACCEL_PLAN_FILE_SLOT_RECORDS_HPP

#include "plan/file/record_fields.hpp"

#include <coaccel/plan/plan_description.hpp>

#include <memory>
#include <span>

namespace coaccel::detail {

struct slot_record {
    /// Its name, kind, type, count and rule.
    plan_slot slot;
    bool has_content = false;
    /// In the contents of the file.
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    content_id id;
};

bool read_slot(const node& record, file_problem& problem, slot_record& made);

/// Takes the contents of a file one after another. They follow each other without gaps, so that no two of them share
/// bytes, and none is outside the file.
class content_reader {
public:
    /// `area`: the file after its description. `owner` keeps it.
    content_reader(std::span<const std::byte> area, std::uint64_t begin, std::shared_ptr<const void> owner,
                   content_check check, file_problem& problem) noexcept
        : area_(area), position_(begin), owner_(std::move(owner)), check_(check), problem_(problem)
    {}

    bool read(const slot_record& s, plan_content& made);

    /// Whether the file ends here.
    bool at_end();

private:
    /// Goes to the beginning of the next content.
    bool skip_padding();

    /// What has not been taken yet.
    std::span<const std::byte> area_;
    /// Of `area_` in the file.
    std::uint64_t position_;
    /// Where the first content begins.
    std::uint64_t first_ = 0;
    std::shared_ptr<const void> owner_;
    content_check check_;
    file_problem& problem_;
};

} // namespace coaccel::detail

#endif
