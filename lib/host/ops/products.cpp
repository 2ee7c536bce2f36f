#include "host/ops/products.hpp"

namespace coaccel::host {
namespace {

template <class T, class A, class B>
void add_product(const A& a, const B& b, matrix_map<T> c, T alpha)
{
    c.noalias() += alpha * a * b;
}

} // namespace

template <blas::dense_element T>
void multiply(blas::transpose ta, blas::transpose tb, const matrix_map<const T>& a, const matrix_map<const T>& b,
              matrix_map<T> c, T alpha, T beta)
{
    using blas::transpose;
    // A conjugate copy costs little next to the product, and saves half of the instantiations.
    if (blas::complex_element<T> && (ta == transpose::conjugate || tb == transpose::conjugate)) {
        const dense<T> a_copy = ta == transpose::conjugate && alpha != T(0) ? dense<T>(a.conjugate()) : dense<T>();
        const dense<T> b_copy = tb == transpose::conjugate && alpha != T(0) ? dense<T>(b.conjugate()) : dense<T>();
        return multiply<T>(ta == transpose::no ? ta : transpose::yes, tb == transpose::no ? tb : transpose::yes,
                           a_copy.size() != 0 ? whole(a_copy) : a, b_copy.size() != 0 ? whole(b_copy) : b, c, alpha,
                           beta);
    }
    if (beta == T(0))
        c.setZero();
    else if (beta != T(1))
        c *= beta;
    if (alpha == T(0))
        return;
    const bool at = ta != transpose::no;
    const bool bt = tb != transpose::no;
    if (at && bt)
        add_product(a.transpose(), b.transpose(), c, alpha);
    else if (at)
        add_product(a.transpose(), b, c, alpha);
    else if (bt)
        add_product(a, b.transpose(), c, alpha);
    else
        add_product(a, b, c, alpha);
}

#define COACCEL_INSTANTIATE(T)                                                                                         \
    template void multiply<T>(blas::transpose, blas::transpose, const matrix_map<const T>&,                            \
                              const matrix_map<const T>&, matrix_map<T>, T, T);
COACCEL_INSTANTIATE(float)
COACCEL_INSTANTIATE(double)
COACCEL_INSTANTIATE(std::complex<float>)
COACCEL_INSTANTIATE(std::complex<double>)
#undef COACCEL_INSTANTIATE

} // namespace coaccel::host
