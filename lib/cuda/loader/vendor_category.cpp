#include "cuda/loader/vendor_category.hpp"

#include "cuda/loader/vendor_library.hpp"

#include <algorithm>

namespace coaccel::cuda {

const vendor_error* vendor_category::find(int value) const noexcept
{
    const auto at = std::ranges::find(errors_, value, &vendor_error::value);
    return at == errors_.end() ? nullptr : &*at;
}

std::string vendor_category::message(int value) const
{
    if (value == 0)
        return "success";
    const vendor_error* known = find(value);
    return known ? known->name : std::string(product_) + " error " + std::to_string(value);
}

boost::system::error_condition vendor_category::default_error_condition(int value) const noexcept
{
    if (value == 0)
        return {value, *this};
    const vendor_error* known = find(value);
    return make_error_condition(known ? known->kind : fault::library);
}

const boost::system::error_category* find_category(std::string_view name) noexcept
{
    for (const vendor_library_info* library : vendor_libraries())
        if (name == library->category().name())
            return &library->category();
    return nullptr;
}

} // namespace coaccel::cuda
