"""The demo shop's statements: ordinary tables, and one of everything that goes wrong elsewhere."""

TABLES = """
CREATE TABLE categories (
  category_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  parent_id INTEGER REFERENCES categories (category_id)
);
CREATE TABLE suppliers (
  supplier_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  country TEXT NOT NULL,
  email TEXT NOT NULL,
  rating REAL
);
CREATE TABLE products (
  product_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  category_id INTEGER NOT NULL REFERENCES categories (category_id),
  supplier_id INTEGER NOT NULL REFERENCES suppliers (supplier_id),
  brand_id INTEGER REFERENCES brands (brand_id), -- the table was never made
  price REAL NOT NULL CHECK (price >= 0),
  price_with_tax REAL GENERATED ALWAYS AS (round(price * 1.25, 2)) VIRTUAL,
  weight_grams INTEGER,
  discontinued INTEGER NOT NULL DEFAULT 0,
  added_on TEXT NOT NULL,
  photo BLOB
);
CREATE TABLE customers (
  customer_id INTEGER PRIMARY KEY,
  first_name TEXT NOT NULL,
  last_name TEXT NOT NULL,
  email TEXT NOT NULL CHECK (email LIKE '%@%'),
  email_domain TEXT GENERATED ALWAYS AS (substr(email, instr(email, '@') + 1)) STORED,
  phone TEXT,
  birth_date TEXT,
  city TEXT NOT NULL,
  country TEXT NOT NULL,
  joined_on TEXT NOT NULL,
  newsletter INTEGER NOT NULL DEFAULT 0,
  "Loyalty Level" TEXT
);
CREATE UNIQUE INDEX customers_by_email ON customers (email);
CREATE TABLE addresses (
  address_id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers,
  kind TEXT NOT NULL,
  street TEXT NOT NULL,
  postcode TEXT NOT NULL,
  city TEXT NOT NULL
);
CREATE TABLE orders (
  order_id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
  ordered_at TEXT NOT NULL,
  status TEXT NOT NULL,
  coupon TEXT,
  note TEXT
);
CREATE TABLE order_items (
  "order" INTEGER NOT NULL REFERENCES orders (order_id),
  line INTEGER NOT NULL,
  product_id INTEGER NOT NULL REFERENCES products (product_id),
  quantity INTEGER NOT NULL,
  unit_price REAL NOT NULL,
  PRIMARY KEY ("order", line)
) WITHOUT ROWID;
CREATE TABLE payments (
  payment_id INTEGER PRIMARY KEY,
  order_id INTEGER NOT NULL REFERENCES orders (order_id),
  method TEXT NOT NULL,
  card_number TEXT,
  amount REAL NOT NULL,
  paid_on TEXT
);
CREATE INDEX payments_by_last_digits ON payments (substr(card_number, -4)) WHERE card_number IS NOT NULL;
CREATE TABLE shipments (
  shipment_id INTEGER PRIMARY KEY,
  order_id INTEGER NOT NULL REFERENCES orders (order_id),
  carrier TEXT NOT NULL,
  shipped_on TEXT NOT NULL,
  delivered_on TEXT
);
CREATE TABLE reviews (
  review_id INTEGER PRIMARY KEY,
  product_id INTEGER NOT NULL REFERENCES products (product_id),
  customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
  stars INTEGER NOT NULL CHECK (stars BETWEEN 1 AND 5),
  body TEXT,
  written_on TEXT NOT NULL
);
CREATE TABLE warehouses (warehouse_id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL);
CREATE TABLE stock (
  warehouse_id INTEGER NOT NULL REFERENCES warehouses,
  product_id INTEGER NOT NULL REFERENCES products,
  quantity INTEGER NOT NULL,
  PRIMARY KEY (warehouse_id, product_id)
) WITHOUT ROWID;
CREATE TABLE "Product Returns" (
  "Return Id" INTEGER PRIMARY KEY,
  "Order Id" INTEGER NOT NULL,
  Line INTEGER NOT NULL,
  Reason TEXT,
  "Returned On" TEXT NOT NULL,
  FOREIGN KEY ("Order Id", Line) REFERENCES order_items ("order", line)
);
CREATE TABLE staff (staff_id INTEGER PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, password_hash TEXT NOT NULL);
CREATE TABLE wishes (customer_id INTEGER REFERENCES customers, product_id INTEGER REFERENCES products, wished_on TEXT);
CREATE TABLE email_changes (customer_id INTEGER REFERENCES customers, old_email TEXT, changed_at TEXT);
"""

VIEWS = """
CREATE VIEW order_totals AS
  SELECT o.order_id, o.customer_id, o.status, sum(i.quantity * i.unit_price) AS total
  FROM orders AS o JOIN order_items AS i ON i."order" = o.order_id GROUP BY o.order_id;
CREATE VIEW customer_contacts AS
  SELECT customer_id, first_name || ' ' || last_name AS name, email, phone FROM customers;
CREATE VIEW card_payments AS
  SELECT payment_id, order_id, substr(card_number, -4) AS last_digits, amount FROM payments WHERE method = 'card';
CREATE TRIGGER customers_email_changed AFTER UPDATE OF email ON customers BEGIN
  INSERT INTO email_changes VALUES (old.customer_id, old.email, datetime('now'));
END;
"""
