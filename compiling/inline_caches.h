/* Inline caches for the C that mypyc writes: included before every generated file.

   mypyc reads attributes of classes it did not compile with PyObject_GetAttr, and names of a module with a dictionary
   lookup, each time. The interpreter remembers, per instruction, where it found the slot (LOAD_ATTR_SLOT, LOAD_GLOBAL);
   these macros do the same per call site, under the same conditions: the version of the type, or of the dictionary. */

#ifndef DRAGOMAN_INLINE_CACHES_H
#define DRAGOMAN_INLINE_CACHES_H

#include <Python.h>
#include <structmember.h>
#include <CPy.h>

#if (defined(__GNUC__) || defined(__clang__)) && !defined(Py_GIL_DISABLED)

typedef struct {
    PyObject *name; /* the only one this site reads from its cache, and held: getattr(object, name) has several */
    unsigned int version[2]; /* of the type; 0 is no version */
    Py_ssize_t offset[2];
    unsigned int next;
    unsigned int misses;
} SlotCache;

enum { MOST_MISSES = 64 };

#if PY_VERSION_HEX < 0x030D0000
#define HAS_VERSION(type) (PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) && (type)->tp_version_tag != 0)
#else /* the flag is no longer used */
#define HAS_VERSION(type) ((type)->tp_version_tag != 0)
#endif

static __attribute__((noinline, unused)) PyObject *slot_missed(PyObject *object, PyObject *name, SlotCache *cache) {
    PyTypeObject *type = Py_TYPE(object);
    if (cache->name == NULL && PyUnicode_CheckExact(name)) {
        Py_INCREF(name);
        cache->name = name;
    }
    if (cache->name == name && cache->misses < MOST_MISSES && type->tp_getattro == PyObject_GenericGetAttr) {
        cache->misses++;
        PyObject *found = _PyType_Lookup(type, name); /* borrowed; gives the type a version */
        if (found != NULL && Py_TYPE(found) == &PyMemberDescr_Type) {
            PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
            if (member->type == T_OBJECT_EX && !(member->flags & READ_RESTRICTED) &&
                HAS_VERSION(type) && PyType_IsSubtype(type, PyDescr_TYPE(found))) {
                cache->version[cache->next] = type->tp_version_tag;
                cache->offset[cache->next] = member->offset;
                cache->next ^= 1;
            }
        }
    }
    return PyObject_GetAttr(object, name);
}

static inline __attribute__((always_inline)) PyObject *slot_read(PyObject *object, PyObject *name, SlotCache *cache) {
    unsigned int version = Py_TYPE(object)->tp_version_tag;
    if (__builtin_expect(version != 0 && cache->name == name, 1)) {
        PyObject *held = NULL;
        if (__builtin_expect(version == cache->version[0], 1)) {
            held = *(PyObject **)((char *)object + cache->offset[0]);
        } else if (version == cache->version[1]) {
            held = *(PyObject **)((char *)object + cache->offset[1]);
        }
        if (__builtin_expect(held != NULL, 1)) {
            Py_INCREF(held);
            return held;
        }
    }
    return slot_missed(object, name, cache);
}

/* The body of a module runs once: caches there would only take memory. The compiler decides this, and leaves out the other
   branch with its cache. */
#define RUNS_ONCE (__builtin_strstr(__func__, "_____top_level__") != NULL)

#undef CPyObject_GetAttr
#define CPyObject_GetAttr(object, name)      \
    (RUNS_ONCE ? PyObject_GetAttr((object), (name)) : __extension__({ \
        static SlotCache cache_of_this_site; \
        slot_read((object), (name), &cache_of_this_site); \
    }))

#if PY_VERSION_HEX < 0x030E0000 /* 3.14 has no versions of dictionaries */

typedef struct {
    uint64_t version; /* every change of any dictionary gives a new one */
    PyObject *name;   /* held by the cache, so that no other object gets its address */
    PyObject *held;   /* borrowed: held by the dictionary as long as the version is the same */
    unsigned int misses;
} NameCache;

/* The field is deprecated since 3.12, and kept until 3.13. */
static inline __attribute__((always_inline)) uint64_t version_of(PyObject *names) {
    _Pragma("GCC diagnostic push")
    _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
    return ((PyDictObject *)names)->ma_version_tag;
    _Pragma("GCC diagnostic pop")
}

/* Dictionaries of instances (ma_values) are left alone: 3.13 writes their values without giving them a new version. */
static __attribute__((noinline, unused)) PyObject *name_missed(PyObject *names, PyObject *name, NameCache *cache) {
    PyObject *held = CPyDict_GetItem(names, name);
    if (held != NULL && cache->misses < MOST_MISSES && PyDict_CheckExact(names) && PyUnicode_CheckExact(name) &&
        ((PyDictObject *)names)->ma_values == NULL) {
        cache->misses++;
        Py_INCREF(name);
        Py_XSETREF(cache->name, name);
        cache->version = version_of(names);
        cache->held = held;
    }
    return held;
}

static inline __attribute__((always_inline)) PyObject *name_read(PyObject *names, PyObject *name, NameCache *cache) {
    if (__builtin_expect(version_of(names) == cache->version && cache->name == name, 1)) {
        Py_INCREF(cache->held);
        return cache->held;
    }
    return name_missed(names, name, cache);
}

#define CPyDict_GetItem(names, name)         \
    (RUNS_ONCE ? (CPyDict_GetItem)((names), (name)) : __extension__({ \
        static NameCache cache_of_this_site; \
        name_read((names), (name), &cache_of_this_site); \
    }))

#endif
#endif
#endif
