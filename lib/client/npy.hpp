#ifndef COACCEL_CLIENT_NPY_HPP
#define COACCEL_CLIENT_NPY_HPP

#include "client/tensor.hpp"

#include <coaccel/core/result.hpp>

#include <string>
#include <string_view>

namespace coaccel::client {

/// Reads the content of a .npy file of NumPy, formats 1 to 3. Numbers in big-endian order are converted.
///
/// Errors: errc::file_invalid, with what is wrong: no .npy file, a header that is none, elements that are no numbers,
/// Fortran order with more than one dimension, another number of bytes than the shape has.
/// Exceptions: std::bad_alloc.
result<tensor> parse_npy(std::string_view content);

/// The content of a .npy file, format 1, with the elements of the tensor.
///
/// Errors: errc::invalid_argument for a type that NumPy does not have.
/// Exceptions: std::bad_alloc.
result<std::string> make_npy(const tensor& t);

} // namespace coaccel::client

#endif
