/* How a compiled coroutine passes an exception on to what it awaits: included before every generated file.

   mypyc calls throw(type, value, traceback). Since Python 3.12 that is deprecated: each call warns, and where warnings are
   errors, as in many test suites, the warning takes the place of the exception. throw(value) does the same. */

#ifndef DRAGOMAN_SINGLE_ARGUMENT_THROW_H
#define DRAGOMAN_SINGLE_ARGUMENT_THROW_H

#include <Python.h>
#include <CPy.h>

#if PY_VERSION_HEX >= 0x030C0000

/* 0: *result was yielded; 1: *result was returned; 2: an exception was raised. */
static inline int throw_value(PyObject *awaited, PyObject **result) {
    PyObject *value = CPy_ExcState()->exc_value;
    PyObject *method = NULL;
    if (!PyErr_GivenExceptionMatches(value, PyExc_GeneratorExit)) {
        method = PyObject_GetAttrString(awaited, "throw");
        if (method == NULL) {
            PyErr_Clear();
        }
    }
    if (method == NULL) {
        return CPy_YieldFromErrorHandle(awaited, result); /* closes it, or raises again */
    }
    Py_INCREF(value);
    *result = PyObject_CallOneArg(method, value);
    Py_DECREF(value);
    Py_DECREF(method);
    if (*result != NULL) {
        return 0;
    }
    *result = CPy_FetchStopIterationValue();
    return *result != NULL ? 1 : 2;
}

#define CPy_YieldFromErrorHandle throw_value

#endif
#endif
