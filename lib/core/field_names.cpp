#include <coaccel/core/detail/field_names.hpp>

#include <deque>
#include <mutex>
#include <string>

namespace coaccel::detail {
namespace {

class names {
public:
    explicit names(const char* word) : word_(word) {}

    std::string_view at(std::size_t index)
    {
        const std::scoped_lock lock(mutex_);
        while (all_.size() <= index)
            all_.push_back(word_ + (' ' + std::to_string(all_.size() + 1)));
        return all_[index];
    }

private:
    const std::string word_;
    std::mutex mutex_;
    std::deque<std::string> all_;
};

} // namespace

// Never destroyed: descriptions of ops refer to the names.
std::string_view argument_name(std::size_t index)
{
    static names& all = *new names("argument");
    return all.at(index);
}

std::string_view operand_name(std::size_t index)
{
    static names& all = *new names("operand");
    return all.at(index);
}

} // namespace coaccel::detail
