#ifndef COACCEL_PLAN_FILE_SLOT_RECORDS_HPP
#define COACCEL_PLAN_FILE_SLOT_RECORDS_HPP

#include "plan/file/plan_file.hpp"
#include "plan/file/record_fields.hpp"

#include <coaccel/plan/plan_set_description.hpp>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace coaccel::detail {

struct slot_record {
    /// Its name, kind, type, count, shape and rule.
    plan_slot slot;
    bool has_content = false;
    /// In the contents of the file.
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    content_id id{};
    /// Its number among the common states of the set; own_state if it is none.
    std::uint32_t common = own_state;
};

/// Whether both can be the same state, with the same initial content. Names do not matter.
bool same_state(const slot_record& a, const slot_record& b) noexcept;

bool read_slot(const node& record, file_problem& problem, slot_record& made);

/// Gives the contents of a file their positions. Equal constants have one position, and so have initial contents in the
/// same memory.
class content_writer {
public:
    /// Writes the position, size and hash of a content.
    void write(tree_writer& out, const plan_content& c);

    /// The bytes from the beginning of the first content to the end of the last one.
    std::uint64_t bytes() const noexcept { return end_; }

    std::vector<plan_content> take() noexcept { return std::move(contents_); }

private:
    std::vector<plan_content> contents_;
    /// By identity or memory, and size.
    std::map<std::pair<const void*, std::uint64_t>, std::uint64_t> offsets_;
    std::uint64_t end_ = 0;
};

/// `content`: null if the slot has none. `common`: as in slot_record.
void write_slot(tree_writer& out, const plan_slot& s, const plan_content* content, std::uint32_t common,
                content_writer& contents);

/// Takes the contents of a file one after another. They follow each other without gaps, so that no two of them share
/// bytes, and none is outside the file. A slot may also have the content of an earlier one.
class content_reader {
public:
    /// `begin`: the end of the description in the file.
    content_reader(const plan_file_source& file, std::size_t begin, file_problem& problem) noexcept
        : file_(file), area_(file.bytes.subspan(begin)), position_(begin), problem_(problem)
    {}

    bool read(const slot_record& s, plan_content& made);

    /// Whether the file ends here.
    bool at_end();

private:
    /// Goes to the beginning of the next content.
    bool skip_padding();

    const plan_file_source& file_;
    /// What has not been taken yet.
    std::span<const std::byte> area_;
    /// Of `area_` in the file.
    std::uint64_t position_;
    /// Where the first content begins.
    std::uint64_t first_ = 0;
    /// What has been taken, by its offset from the first content.
    std::map<std::uint64_t, plan_content> taken_;
    file_problem& problem_;
};

} // namespace coaccel::detail

#endif
