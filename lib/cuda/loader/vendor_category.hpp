#ifndef COACCEL_CUDA_LOADER_VENDOR_CATEGORY_HPP
#define COACCEL_CUDA_LOADER_VENDOR_CATEGORY_HPP

#include <coaccel/core/error.hpp>

#include <span>
#include <string>
#include <string_view>

namespace coaccel::cuda {

/// One error of a vendor library.
struct vendor_error {
    int value;
    const char* name;
    fault kind;
};

/// The errors of one vendor library, with its own values and names. Their conditions are coaccel's faults.
class vendor_category : public boost::system::error_category {
public:
    /// `product` is the name of the library in the messages of unknown errors.
    constexpr vendor_category(const char* name, const char* product, std::span<const vendor_error> errors) noexcept
        : name_(name), product_(product), errors_(errors)
    {}

    const char* name() const noexcept final { return name_; }
    std::string message(int value) const override;
    boost::system::error_condition default_error_condition(int value) const noexcept final;

    /// Null if the value is not known.
    const vendor_error* find(int value) const noexcept;

private:
    const char* name_;
    const char* product_;
    std::span<const vendor_error> errors_;
};

/// Finds the error category of a vendor library by name, such as "coaccel.cublas"; null if there is none.
COACCEL_DECL const boost::system::error_category* find_category(std::string_view name) noexcept;

} // namespace coaccel::cuda

#endif
