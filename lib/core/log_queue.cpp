#include "core/log_queue.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::detail {

bool log_queue::has_room(std::string_view text) const noexcept
{
    return messages_.size() < most_messages && bytes_ + std::min(text.size(), longest_text) <= most_bytes;
}

void log_queue::push(log_level level, std::string_view text, void (*receiver)(std::string_view))
{
    if (!has_room(text))
        return drop();
    log_message added{level, std::string(text.substr(0, longest_text)), receiver};
    // The count takes the position of the missing messages, so it comes first. The limits do not apply to it.
    if (dropped_ > 0) {
        messages_.push_back(take_dropped());
        bytes_ += messages_.back().text.size();
    }
    bytes_ += added.text.size();
    messages_.push_back(std::move(added));
}

std::optional<log_message> log_queue::pop()
{
    if (messages_.empty())
        return dropped_ > 0 ? std::optional(take_dropped()) : std::nullopt;
    log_message first = std::move(messages_.front());
    messages_.pop_front();
    bytes_ -= first.text.size();
    return first;
}

log_message log_queue::take_dropped()
{
    std::string text = "log: " + std::to_string(dropped_) + (dropped_ == 1 ? " message" : " messages") + " dropped";
    dropped_ = 0;
    return {log_level::warning, std::move(text)};
}

} // namespace coaccel::detail
